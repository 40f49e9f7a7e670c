/** The file that conversations are exported to. Version 1 is the first, version 2 has videos; a page reads its own version
 * and all before. */
import type { Conversation, MediaItem, Message } from "./store.js";

export const FORMAT = "bezel-conversations";
export const FORMAT_VERSION = 2;

/** Media are data URLs. */
export type WrittenMedia = Omit<MediaItem, "blob"> & { data: string };
export type WrittenMessage = Omit<Message, "media" | "conversation" | "canvas" | "encoding" | "pace"> & { media?: WrittenMedia[] };
export type WrittenConversation = Conversation & { messages: WrittenMessage[] };

export interface Backup {
    format: typeof FORMAT;
    version: number;
    /** ISO 8601 */
    exported: string;
    conversations: WrittenConversation[];
}
