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
    link: "M8.5 11.5l3-3M7 9l-2 2a2.8 2.8 0 0 0 4 4l2-2M13 11l2-2a2.8 2.8 0 0 0-4-4L9 7",
    warn: "M10 3.5L17.5 16h-15zM10 8.5v3.5M10 14v.2",
    attach: "M15.5 9.5l-5.6 5.6a3.6 3.6 0 0 1-5.1-5.1l6-6a2.4 2.4 0 0 1 3.4 3.4l-6 6a1.2 1.2 0 0 1-1.7-1.7l5.3-5.3",
    microphone: "M10 3a2.2 2.2 0 0 1 2.2 2.2v4.6a2.2 2.2 0 0 1-4.4 0V5.2A2.2 2.2 0 0 1 10 3zM5 9.5a5 5 0 0 0 10 0M10 14.5V17",
    sound: "M4 8v4h3l4 3V5L7 8zM14 7.5a3.5 3.5 0 0 1 0 5",
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
