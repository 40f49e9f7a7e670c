/** The package. All of the page goes through here, so that a test can put something else in its place. */
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
