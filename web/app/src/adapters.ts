/** LoRA adapters of the loaded model: small files that change what it writes. They belong to one loaded model; if that is
 * loaded again after a loss of the device, so are they. No DOM here. */
import type { AppliedLora, BezelLora, BezelModel } from "./bezel.js";
import type { Choice, ModelManager } from "./model.js";
import { Signal } from "./signal.js";

export interface PageAdapter {
    file: File;
    lora: BezelLora;
    /** 1: as it was trained; 0: without effect. */
    scale: number;
}

export class Adapters {
    readonly list = new Signal<PageAdapter[]>([]);
    #model: BezelModel | null = null;
    #choice: Choice | null = null;

    constructor(models: ModelManager) {
        models.state.watch((state) => {
            if (state.kind === "ready" && state.model !== this.#model) {
                const before = state.choice === this.#choice ? this.list.value : [];
                this.#model = state.model;
                this.#choice = state.choice;
                this.list.set([]);
                void this.#restore(before);
            }
        });
    }

    async #restore(before: PageAdapter[]): Promise<void> {
        for (const { file, scale } of before) {
            await this.add(file, scale).catch(() => undefined); // the file is gone: the model answers without it
        }
    }

    /** Rejects with a sentence for the user. */
    async add(file: File, scale = 1): Promise<void> {
        const model = this.#model;
        const lora = await model?.loadLora(file);
        if (lora && model === this.#model) {
            this.list.set([...this.list.value, { file, lora, scale }]);
        }
    }

    remove(adapter: PageAdapter): void {
        this.list.set(this.list.value.filter((one) => one !== adapter));
        void adapter.lora.free().catch(() => undefined); // the model was unloaded
    }

    setScale(adapter: PageAdapter, scale: number): void {
        adapter.scale = scale;
        this.list.set([...this.list.value]);
    }

    /** For a request to this model. */
    appliedTo(model: BezelModel): AppliedLora[] {
        return model === this.#model ? this.list.value.filter(({ scale }) => scale !== 0).map(({ lora, scale }) => ({ lora, scale })) : [];
    }
}
