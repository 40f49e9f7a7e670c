/** The npm package. The page imports it only from here, so that tests can replace it. */
export { Bezel, BezelError, sizeOfPicture } from "../../package/src/index.js";
export type {
    BezelModel,
    Capabilities,
    ChatChunk,
    ContentPart,
    DownloadProgress,
    Inspection,
    ModelFacts,
    Progress,
    StoredModel,
    StreamRequest,
} from "../../package/src/index.js";
