/** Hooks for React, and for libraries with its functions, without depending on it:
 *
 *   import * as React from "react";
 *   import { hooks } from "bezel/react";
 *   const { useModel, useChat } = hooks(React);
 */
import { Bezel, type BezelModel, type LoadOptions } from "./bezel.js";
import type { ChatRequest, ContentPart, Message } from "./chat_types.js";
import type { Progress } from "./methods.js";
import type { ModelSource } from "./sources.js";

/** What is used of React. */
export interface ReactLike {
    useState<T>(initial: T | (() => T)): [T, (value: T | ((before: T) => T)) => void];
    useEffect(effect: () => void | (() => void), dependencies?: readonly unknown[]): void;
    useRef<T>(initial: T): { current: T };
}

export interface ModelState {
    /** null: not loaded (yet). */
    model: BezelModel | null;
    progress: Progress | null;
    error: Error | null;
}

export interface ChatState {
    /** The last one grows while it is answered. */
    messages: Message[];
    answering: boolean;
    error: Error | null;
    /** Does nothing without a model, or while answering. */
    send: (content: string | ContentPart[]) => Promise<void>;
    /** Ends the answer; what is written stays. */
    stop: () => void;
    reset: () => void;
}

export interface Hooks {
    /** Loads a model and closes it when the component is removed or the source changes; null: none. Keep a list of several
     * sources in a state or a memo: another list is another model. */
    useModel: (source: ModelSource | ModelSource[] | null, options?: LoadOptions) => ModelState;
    /** A conversation. `request`: settings, the system prompt among the messages. */
    useChat: (model: BezelModel | null, request?: Partial<ChatRequest>) => ChatState;
}

const toError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)));

export function hooks({ useState, useEffect, useRef }: ReactLike): Hooks {
    const nothing: ModelState = { model: null, progress: null, error: null };

    function useModel(source: ModelSource | ModelSource[] | null, options: LoadOptions = {}): ModelState {
        const [state, setState] = useState<ModelState>(nothing);
        useEffect(() => {
            const control = new AbortController();
            let loaded: BezelModel | null = null;
            setState(nothing);
            if (source !== null) {
                const onProgress = (progress: Progress): void => {
                    if (!control.signal.aborted) {
                        setState({ model: null, progress, error: null });
                        options.onProgress?.(progress);
                    }
                };
                Bezel.load(source, { ...options, onProgress, signal: control.signal }).then(
                    (model) => {
                        if (control.signal.aborted) {
                            model.close();
                            return;
                        }
                        loaded = model;
                        setState({ model, progress: null, error: null });
                    },
                    (reason: unknown) => control.signal.aborted || setState({ model: null, progress: null, error: toError(reason) }),
                );
            }
            return () => {
                control.abort();
                loaded?.close();
            };
        }, [source]);
        return state;
    }

    function useChat(model: BezelModel | null, request: Partial<ChatRequest> = {}): ChatState {
        const { messages: first = [], ...settings } = request;
        const [messages, setMessages] = useState<Message[]>(first);
        const [answering, setAnswering] = useState(false);
        const [error, setError] = useState<Error | null>(null);
        const control = useRef<AbortController | null>(null);
        useEffect(() => () => control.current?.abort(), [model]);

        async function send(content: string | ContentPart[]): Promise<void> {
            if (!model || control.current) {
                return;
            }
            const own = new AbortController();
            control.current = own;
            const told: Message[] = [...messages, { role: "user", content }];
            let text = "";
            setMessages([...told, { role: "assistant", content: "" }]);
            setAnswering(true);
            setError(null);
            try {
                for await (const { choices } of await model.chat.completions.create({ ...settings, messages: told, stream: true }, { signal: own.signal })) {
                    if (own.signal.aborted) {
                        break; // what was still in the queue
                    }
                    text += choices[0]?.delta.content ?? "";
                    setMessages([...told, { role: "assistant", content: text }]);
                }
            } catch (reason) {
                if (!own.signal.aborted) {
                    setError(toError(reason));
                    setMessages(text === "" ? told : [...told, { role: "assistant", content: text }]);
                }
            } finally {
                if (control.current === own) { // else it was reset
                    control.current = null;
                    setAnswering(false);
                }
            }
        }

        function reset(): void {
            control.current?.abort();
            control.current = null;
            setMessages(first);
            setAnswering(false);
            setError(null);
        }

        return { messages, answering, error, send, stop: () => control.current?.abort(), reset };
    }

    return { useModel, useChat };
}
