/** The npm package. The page imports it only from here, so that tests can replace it. */
export { Bezel, BezelError, imageSize } from "../../package/src/index.js";
export type {
    AppliedLora,
    BezelLora,
    BezelModel,
    BezelSession,
    Capabilities,
    ChatChunk,
    ContentPart,
    Message as ChatMessage,
    DownloadProgress,
    Inspection,
    ModelInfo,
    Progress,
    StoredModel,
    StreamRequest,
    Tool,
    ToolCallDelta,
    UnfinishedDownload,
} from "../../package/src/index.js";
