/** The npm package. The page imports it only from here, so that tests can replace it. */
export { Bezel, BezelError, imageSize } from "../../package/src/index.js";
export type {
    BezelModel,
    Capabilities,
    ChatChunk,
    ContentPart,
    DownloadProgress,
    Inspection,
    ModelInfo,
    Progress,
    StoredModel,
    StreamRequest,
} from "../../package/src/index.js";
