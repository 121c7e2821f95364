/**
 * The script of the API's page: with a one-time code behind the address it signs in, and then each route can be tried from the
 * page. What comes back is shown as text; the code leaves the address at once, the token stays in the tab.
 */
export const docsScript = `
const signedIn = document.getElementById("signed-in")
const kept = "bezel.token"
const say = (text) => { signedIn.textContent = text }

const trying = (details, token) => {
  const { method, path } = details.dataset
  const form = document.createElement("form")
  const target = document.createElement("input")
  target.value = path
  target.setAttribute("aria-label", "path and query")
  form.append(target)
  const body = document.createElement("textarea")
  body.setAttribute("aria-label", "body")
  body.value = "{}"
  if (method !== "GET" && method !== "DELETE") form.append(body)
  const send = document.createElement("button")
  send.textContent = "Try"
  const shown = document.createElement("pre")
  shown.hidden = true
  form.append(send)
  details.append(form, shown)
  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    shown.hidden = false
    shown.textContent = ""
    try {
      const response = await fetch(target.value, {
        method,
        headers: { authorization: "Bearer " + token, ...(body.isConnected ? { "content-type": "application/json" } : {}) },
        ...(body.isConnected ? { body: body.value } : {})
      })
      shown.textContent = response.status + " " + response.statusText + "\\n"
      if (response.body === null) return
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        shown.textContent = (shown.textContent + value).slice(-200000)
      }
    } catch (error) {
      shown.textContent += String(error)
    }
  })
}

const begin = (token, scope) => {
  say("This page is signed in with scope " + scope + ": open a route and try it.")
  for (const details of document.querySelectorAll("details[data-method]")) trying(details, token)
}

const code = /^#code=([\\w-]+)$/.exec(location.hash)?.[1]
if (code !== undefined) {
  history.replaceState(null, "", location.pathname)
  const response = await fetch("/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code })
  })
  const answer = await response.json()
  if (response.ok) sessionStorage.setItem(kept, JSON.stringify(answer))
  else say(answer.error.message)
}
const known = sessionStorage.getItem(kept)
if (known !== null) {
  const { scope, token } = JSON.parse(known)
  begin(token, scope)
}
`
