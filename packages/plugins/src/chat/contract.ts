/**
 * What other plugins may rely on of chat: the places of its screen that they may fill.
 */

/**
 * Names for `ctx.slots.add`: above the transcript, between queue and editor, in the status row behind the place (of what is
 * added there only text is taken), below the status row.
 */
export const chatSlots = {
  header: "chat.header",
  aboveEditor: "chat.aboveEditor",
  status: "chat.status",
  footer: "chat.footer"
} as const
