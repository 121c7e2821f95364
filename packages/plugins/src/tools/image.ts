/** Kinds of images that models read, told by their first bytes and not by their name. */

/** The media type, or `null` if the bytes begin no such image. */
export const imageType = (bytes: Buffer): string | null => {
  const starts = (signature: string) => bytes.subarray(0, signature.length).toString("latin1") === signature
  if (starts("\u0089PNG\r\n\u001a\n")) return "image/png"
  if (starts("\u00ff\u00d8\u00ff")) return "image/jpeg"
  if (starts("GIF87a") || starts("GIF89a")) return "image/gif"
  if (starts("RIFF") && bytes.subarray(8, 12).toString("latin1") === "WEBP") return "image/webp"
  return null
}
