export { Bezel, BezelLora, BezelModel, BezelSession, Completions, Embeddings } from "./bezel.js";
export type { AppliedLora, ChatOptions, DownloadOptions, LoadOptions, RuntimeOptions, RequestOptions } from "./bezel.js";
export type { AdapterInfo, Capabilities } from "./capabilities.js";
export type * from "./chat_types.js";
export type { DownloadedModel, DownloadProgress } from "./download.js";
export type { EmbeddingRequest, EmbeddingResponse } from "./embeddings.js";
export type { Inspection } from "./inspect.js";
export type { DeviceChoice, ModelInfo, Progress } from "./methods.js";
export type { StoredModel } from "./opfs.js";
export type { WorkerLike } from "./rpc.js";
export type { ModelSource } from "./sources.js";
export { imageSize, type ImageSize } from "./image_size.js";
export { urlSource } from "./url_source.js";
export type { UnfinishedDownload } from "./unfinished.js";

/* The engine itself, without a worker and without OpenAI's types. */
export { Embedder, type Vectors } from "./embedder.js";
export { Encoder, Media, type EncodeOptions, type MediaKind } from "./encoder.js";
export { Engine, type EngineOptions } from "./engine.js";
export { Lora, type LoraInfo, type LoraUse } from "./lora.js";
export { Model } from "./model.js";
export { Session } from "./session.js";
export { Turn, type Part, type PartKind } from "./turn.js";
export type { DeviceCounts } from "./device.js";
export { Gpu } from "./gpu.js";
export { BezelError, statusNames, type ErrorCode, type StatusName } from "./errors.js";
export { blobSource, bytesSource, type Source } from "./source.js";
export type * from "./options.js";
