"use client";
// The package in a client component, with the hooks of bezel/react.
import { useEffect, useState } from "react";
import * as React from "react";
import { hooks } from "bezel/react";

const { useModel, useChat } = hooks(React);
const options = { device: "cpu", threads: 2 };

export default function Page() {
    const [source] = useState("/models/nano-e-q8_0.gguf");
    const { model, error } = useModel(source, options);
    const { messages, answering, send, error: failed } = useChat(model, { max_tokens: 3, temperature: 0 });
    const answer = messages[1]?.content ?? "";
    useEffect(() => {
        if (model && messages.length === 0) {
            void send("Name three gems.");
        }
    }, [model]);
    useEffect(() => {
        if (error || failed) {
            document.title = `failed: ${(error ?? failed).message}`;
        } else if (answer !== "" && !answering) {
            document.title = `answered with ${model.info.threads} threads`;
        }
    });
    return <p>{answer}</p>;
}
