/** Line icons on a 20 x 20 grid, in the current text color. */

const paths = {
    plus: "M10 4v12M4 10h12",
    menu: "M3 6h14M3 10h14M3 14h14",
    close: "M5 5l10 10M15 5L5 15",
    send: "M10 16V4M5 9l5-5 5 5",
    stop: "M5.5 5.5h9v9h-9z",
    copy: "M7 7V4h9v9h-3M4 7h9v9H4z",
    check: "M4 10.5l4 4 8-9",
    again: "M15.5 8A6 6 0 1 0 16 11M16 4v4h-4",
    edit: "M4 16l1-4 8-8 3 3-8 8zM11.5 5.5l3 3",
    bin: "M4 6h12M8 6V4h4v2M6 6l1 10h6l1-10",
    go: "M6 4l9 6-9 6z",
    down: "M5 8l5 5 5-5",
    file: "M5 3h7l3 3v11H5zM12 3v3h3",
    download: "M10 3.5v9M6 9l4 4 4-4M4 16.5h12",
    link: "M8.5 11.5l3-3M7 9l-2 2a2.8 2.8 0 0 0 4 4l2-2M13 11l2-2a2.8 2.8 0 0 0-4-4L9 7",
    warn: "M10 3.5L17.5 16h-15zM10 8.5v3.5M10 14v.2",
    attach: "M15.5 9.5l-5.6 5.6a3.6 3.6 0 0 1-5.1-5.1l6-6a2.4 2.4 0 0 1 3.4 3.4l-6 6a1.2 1.2 0 0 1-1.7-1.7l5.3-5.3",
    microphone: "M10 3a2.2 2.2 0 0 1 2.2 2.2v4.6a2.2 2.2 0 0 1-4.4 0V5.2A2.2 2.2 0 0 1 10 3zM5 9.5a5 5 0 0 0 10 0M10 14.5V17",
    image: "M3.5 4.5h13v11h-13zM3.5 13l4-4 3 3 2-2 4 4M12.6 7.6v.2",
    sound: "M4 8v4h3l4 3V5L7 8zM14 7.5a3.5 3.5 0 0 1 0 5",
    tool: "M12.5 3.5a4 4 0 0 0-4 5.3L3.5 13.8v2.7h2.7l5-5a4 4 0 0 0 5-5.2l-2.6 2.6-2.4-.6-.6-2.4z",
    shelf: "M4 3.5v13M7.5 3.5v13M4 5.5h3.5M4 14.5h3.5M10 4l3.6 12.4M13.4 3l3.6 12.4M10 4l3.4-1M13.6 16.4l3.4-1",
    pin: "M7 3.5h6M8 3.5v5l-2.5 3h9L12 8.5v-5M10 11.5v5",
    search: "M9 3.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M13 13l3.5 3.5",
    more: "M4.5 10h.2M10 10h.2M15.5 10h.2",
    left: "M12 5l-5 5 5 5",
    right: "M8 5l5 5-5 5",
    speak: "M4 8v4h3l4 3V5L7 8zM13.5 7.5a3.5 3.5 0 0 1 0 5M15.5 5.5a6.4 6.4 0 0 1 0 9",
    out: "M10 12V3.5M6.5 7L10 3.5 13.5 7M4 12v4.5h12V12",
    sliders: "M4 6h6M14 6h2M4 14h2M10 14h6M12 4v4M8 12v4",
} as const;

export type IconName = keyof typeof paths;

const svg = "http://www.w3.org/2000/svg";

export function icon(name: IconName): SVGSVGElement {
    const element = document.createElementNS(svg, "svg");
    element.setAttribute("viewBox", "0 0 20 20");
    element.setAttribute("class", "icon");
    element.setAttribute("aria-hidden", "true");
    const path = document.createElementNS(svg, "path");
    path.setAttribute("d", paths[name]);
    element.append(path);
    return element;
}

/** The logo, defined once in index.html. */
export function gem(): SVGSVGElement {
    const element = document.createElementNS(svg, "svg");
    element.setAttribute("class", "gem");
    element.setAttribute("aria-hidden", "true");
    const use = document.createElementNS(svg, "use");
    use.setAttribute("href", "#gem");
    element.append(use);
    return element;
}
