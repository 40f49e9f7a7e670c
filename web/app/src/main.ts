/** The page: puts the parts together and decides which of the two views is seen. */
import { Attachments } from "./attach.js";
import type { BezelModel } from "./bezel.js";
import { Chat } from "./chat.js";
import { byId, h, show } from "./dom.js";
import { Drafts } from "./draft.js";
import { ModelKeeper } from "./model.js";
import { acceptDrops } from "./pick.js";
import { Recorder } from "./record.js";
import { Signal } from "./signal.js";
import { Store, type Settings } from "./store.js";
import { AttachView } from "./view_attach.js";
import { ChatView } from "./view_chat.js";
import { ModelChip } from "./view_model.js";
import { SettingsView } from "./view_settings.js";
import { SideView } from "./view_side.js";
import { StartView } from "./view_start.js";

let toasted: ReturnType<typeof setTimeout> | undefined;

function toast(text: string): void {
    const element = byId("toast");
    element.textContent = text;
    show(element, true);
    clearTimeout(toasted); // of the one before
    toasted = setTimeout(() => show(element, false), 6000);
}

async function main(): Promise<void> {
    const store = await Store.open();
    const settings = new Signal<Settings>(await store.settings());
    const models = new ModelKeeper(store, settings);
    const chat = new Chat(store, models, settings);
    const attachments = new Attachments(models);
    let choosing = false; // the user asked for the list of models while a conversation was open
    let aside = false; // a model was dropped on the conversation: from its card the way back leads there
    let seen: BezelModel | null = null;
    let stored = true;

    const update = (): void => {
        const talk = chat.messages.value.length > 0;
        const start = choosing || (models.state.value.kind !== "ready" && !talk);
        show(byId("start"), start);
        show(byId("chat"), !start);
        byId("title").classList.toggle("unseen", start);
        show(byId("model-chip"), !start || models.state.value.kind !== "none");
    };
    const stay = (): void => {
        choosing = true;
        update();
    };
    const choose = (value: boolean) => (): void => {
        choosing = value;
        update();
        if (value) {
            void start.refresh();
        } else {
            view.focus();
        }
    };

    await chat.start();
    const view = new ChatView(chat, models, attachments, choose(true));
    new Drafts(store, chat, attachments, byId<HTMLTextAreaElement>("composer-text"));
    new AttachView(attachments, new Recorder(), models);
    const start = new StartView(models, stay, choose(false));
    new ModelChip(models, choose(true));
    new SideView(chat, choose(false));
    new SettingsView(settings, store, chat, models);
    acceptDrops({
        model: (choice) => {
            aside = Boolean(byId("start").hidden);
            stay();
            void models.inspect(choice);
        },
        media: (files, refusals) => {
            if (files.length > 0 && !models.loaded) {
                toast("Load a model first: then pictures and sounds can be dropped into a message.");
            } else if (files.length === 0 && byId("chat").hidden) {
                toast(refusals.join(" "));
            } else {
                choose(false)();
                void attachments.add(files, refusals);
            }
        },
        leftOut: (refusals) => refusals.length > 0 && toast(refusals.join(" ")),
    });
    chat.onStorageError = () => {
        if (stored) {
            toast("The browser does not store this conversation; it will be gone when the page is closed.");
        }
        stored = false;
    };
    chat.messages.watch(update);
    models.state.watch((state) => {
        if (state.kind === "ready") {
            choosing = choosing && state.model === seen && !aside; // back from another one's card, the list is still there
            seen = state.model;
            aside = false;
        }
        update();
        if (state.kind === "ready" && !choosing) {
            view.focus();
        }
    });
    // Another tab may have written meanwhile.
    document.addEventListener("visibilitychange", () => {
        if (!document.hidden) {
            void chat.sync();
        }
    });
    document.documentElement.dataset["started"] = "yes";
    await Promise.all([start.refresh(), models.resume()]);
}

main().catch((reason: unknown) => {
    const text = reason instanceof Error ? reason.message : String(reason);
    const start = byId("start");
    start.replaceChildren(
        h(
            "div",
            { class: "start-column" },
            h(
                "div",
                { class: "card bad", role: "alert" },
                h("h2", { id: "start-title" }, "Bezel could not start"),
                h("p", {}, `${text}. A private window, or a browser that stores nothing for pages, can be the cause.`),
                h("div", { class: "actions" }, h("button", { type: "button", class: "main", onclick: () => location.reload() }, "Try again")),
            ),
        ),
    );
    show(start, true);
});
