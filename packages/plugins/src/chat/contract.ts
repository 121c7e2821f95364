/**
 * What other plugins may rely on of chat: the places of its screen that they may fill.
 */

/** Names for `ctx.slots.add`: above the transcript, between queue and editor, below the status row. */
export const chatSlots = { header: "chat.header", aboveEditor: "chat.aboveEditor", footer: "chat.footer" } as const
