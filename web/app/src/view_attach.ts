/** The composer's attachments: list, attach button, microphone. */
import { pastedFiles, type Attachments } from "./attach.js";
import { announce, byId, h, show } from "./dom.js";
import { formatSeconds } from "./format.js";
import { icon } from "./icons.js";
import type { ModelManager } from "./model.js";
import { LEVELS, type Recorder, type RecorderState } from "./record.js";
import { MediaList } from "./view_media.js";

export class AttachView {
    readonly #attachments: Attachments;
    readonly #recorder: Recorder;
    readonly #form = byId("composer");
    readonly #text = byId<HTMLTextAreaElement>("composer-text");
    readonly #attach = byId<HTMLButtonElement>("attach");
    readonly #record = byId<HTMLButtonElement>("record");
    readonly #note = byId("attach-note");
    readonly #list: MediaList;
    // While recording:
    readonly #levelBars = Array.from({ length: LEVELS }, () => h("span"));
    readonly #time = h("span", { class: "time", role: "timer" });
    readonly #recordingBar = byId("recording");
    #phase: RecorderState["kind"] = "idle";

    constructor(attachments: Attachments, recorder: Recorder, models: ModelManager) {
        this.#attachments = attachments;
        this.#recorder = recorder;
        this.#list = new MediaList("Attached", (item) => {
            attachments.remove(item);
            announce(`${item.name} removed`);
            this.#text.focus();
        });
        byId("tray").append(this.#list.root);
        this.#drawRecordingBar();
        this.#listen();
        attachments.items.watch((items) => {
            if (items.length > this.#list.items.length) {
                announce(`${items.at(-1)?.name ?? ""} attached`);
            }
            this.#list.set(items);
            show(byId("tray"), items.length > 0);
        });
        attachments.note.watch(() => this.#drawNote());
        recorder.problem.watch(() => this.#drawNote());
        recorder.state.watch((state) => this.#drawRecording(state));
        models.state.watch(() => this.#drawButtons());
    }

    #listen(): void {
        this.#attach.append(icon("attach"));
        this.#attach.addEventListener("click", () => void this.#attachments.choose().then(() => this.#text.focus()));
        this.#record.append(icon("microphone"));
        this.#record.addEventListener("click", () => {
            const against = this.#attachments.reasonAgainst("audio");
            if (against) {
                this.#attachments.note.set(against);
            } else {
                this.#attachments.note.set(null);
                void this.#recorder.start();
            }
        });
        this.#recorder.onEnd = () => void this.#keepRecording();
        addEventListener("paste", (event) => {
            const files = pastedFiles(event);
            const here = !byId("chat").hidden && !document.querySelector("dialog[open]");
            if (files.length > 0 && here) {
                event.preventDefault();
                void this.#attachments.add(files);
            }
        });
        addEventListener("keydown", (event) => {
            if (event.key === "Escape" && this.#recorder.state.value.kind !== "idle") {
                event.preventDefault();
                event.stopImmediatePropagation();
                this.#discardRecording();
            }
        }, { capture: true });
    }

    /** Only aria-disabled if the model does not support it: a click then shows why. */
    #drawButtons(): void {
        const [noImages, noSound] = [this.#attachments.reasonAgainst("image"), this.#attachments.reasonAgainst("audio")];
        const draw = (button: HTMLElement, label: string, against: string | null): void => {
            button.setAttribute("aria-disabled", String(against !== null));
            button.setAttribute("aria-label", against === null ? label : `${label}: not available. ${against}`);
            button.title = against ?? label;
        };
        const what = (noImages === null) === (noSound === null) ? "Attach images, sound or videos" : noImages === null ? "Attach images or videos" : "Attach sound";
        draw(this.#attach, what, noImages !== null && noSound !== null ? noImages : null);
        draw(this.#record, "Record speech", noSound);
    }

    #drawNote(): void {
        const text = this.#recorder.problem.value ?? this.#attachments.note.value;
        const hide = (): void => {
            this.#recorder.problem.set(null);
            this.#attachments.note.set(null);
        };
        show(this.#note, text !== null);
        this.#note.replaceChildren(
            icon("warn"),
            h("span", { class: "note-text" }, text ?? ""),
            h("button", { type: "button", class: "quiet small", "aria-label": "Hide this", onclick: hide }, icon("close")),
        );
    }

    // ---- recording ------------------------------------------------------------------------------

    #drawRecordingBar(): void {
        this.#recordingBar.append(
            h("button", { type: "button", class: "quiet", "aria-label": "Discard the recording", title: "Discard", onclick: () => this.#discardRecording() }, icon("bin")),
            h("span", { class: "dot", "aria-hidden": "true" }),
            this.#time,
            h("span", { class: "levels", "aria-hidden": "true" }, ...this.#levelBars),
            h("button", { type: "button", class: "round", id: "keep-recording", "aria-label": "Keep the recording", title: "Keep", onclick: () => void this.#keepRecording() }, icon("check")),
        );
    }

    #drawRecording(state: RecorderState): void {
        const active = state.kind !== "idle";
        const [before, now] = [this.#phase, state.kind];
        this.#phase = now;
        this.#form.classList.toggle("recording", active);
        show(this.#recordingBar, active);
        if (active) {
            const recording = state.kind === "recording";
            this.#recordingBar.classList.toggle("asking", !recording);
            this.#time.textContent = recording ? formatSeconds(state.seconds) : "Waiting for the microphone\u2026";
            this.#levelBars.forEach((bar, i) => {
                const level = recording ? (state.levels[i - LEVELS + state.levels.length] ?? 0) : 0;
                bar.style.transform = `scaleY(${Math.max(0.08, level)})`;
            });
        }
        // Moves the focus, because the element that had it is now hidden.
        if (now === "asking" && before !== now) {
            this.#recordingBar.querySelector("button")?.focus();
        } else if (now === "recording" && before !== now) {
            announce("Recording");
            byId("keep-recording").focus();
        } else if (now === "idle" && before !== now) {
            this.#record.focus();
        }
    }

    #discardRecording(): void {
        this.#recorder.cancel();
        announce("Recording discarded");
    }

    async #keepRecording(): Promise<void> {
        const recording = await this.#recorder.stop();
        if (recording) {
            const clock = new Date().toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false });
            this.#attachments.addSound(recording.blob, `Recording ${clock}`, recording.seconds);
            this.#text.focus();
        }
    }
}
