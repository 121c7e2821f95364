/** The API without the client, as any language would call it. */

export const rawTurn = async (url: string, token: string, text: string): Promise<string> => {
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const answer = await response.json() as Record<string, string> & { error: Record<string, string> }
    // Every error has this shape, whatever the status.
    if (!response.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`)
    return answer
  }
  const { id } = await call("POST", "/session", { title: "without a client" })
  // Sent again after a lost answer, it would still be one prompt.
  const { inputID } = await call("POST", `/session/${id}/prompt`, { text, requestID: "first" })
  const { status, text: answer } = await call("POST", `/session/${id}/wait?input=${inputID}&timeout=60`)
  return `${status === "done" ? answer : status}`
}
