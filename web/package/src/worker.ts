/** A worker's script: the engine behind messages. */
import { serve, type WorkerScope } from "./rpc.js";
import { Service } from "./service.js";

serve(globalThis as unknown as WorkerScope, new Service().handlers);
