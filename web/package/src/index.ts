export { Engine, Model, Session, Turn, type EngineOptions, type Part, type PartKind } from "./engine.js";
export type { DeviceCounts } from "./device.js";
export { Gpu } from "./gpu.js";
export { BezelError, statusNames, type ErrorCode, type StatusName } from "./errors.js";
export { blobSource, bytesSource, type Source } from "./source.js";
export type * from "./options.js";
