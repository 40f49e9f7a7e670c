/** Formats numbers, times and titles for display. */

export function formatBytes(bytes: number): string {
    const units = ["bytes", "kB", "MB", "GB", "TB"];
    let unit = 0;
    let value = bytes;
    while (value >= 999.5 && unit < units.length - 1) {
        value /= 1000;
        unit++;
    }
    const digits = unit > 0 && value < 9.95 ? 1 : 0;
    return `${value.toFixed(digits)} ${units[unit] ?? ""}`;
}

/** 4.6 billion, 26 million, 812,000 */
export function formatCount(n: number): string {
    if (n >= 999.5e6) {
        return `${(n / 1e9).toFixed(n < 99.5e8 ? 1 : 0)} billion`;
    }
    if (n >= 999.5e3) {
        return `${(n / 1e6).toFixed(n < 9.95e6 ? 1 : 0)} million`;
    }
    return Math.round(n).toLocaleString("en");
}

export function formatRate(perSecond: number): string {
    return `${perSecond.toFixed(perSecond < 9.95 ? 1 : 0)} tokens/s`;
}

/** " \u00b7 312 of 411 drafts right"; empty: there were none. */
export function formatDrafts(drafted = 0, accepted = 0): string {
    return drafted > 0 ? ` \u00b7 ${accepted.toLocaleString("en")} of ${drafted.toLocaleString("en")} drafts right` : "";
}

/** 0:07, 12:40 */
export function formatSeconds(seconds: number): string {
    const whole = Math.floor(seconds);
    return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** "40 s", "12 min", "3 h 5 min" */
export function formatTimeLeft(seconds: number): string {
    if (seconds < 55) {
        return `${Math.max(5, 5 * Math.round(seconds / 5))} s`;
    }
    const minutes = Math.round(seconds / 60);
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** "just now", "12 min ago", "Tuesday", "3 Mar" */
export function formatAge(then: number, now = Date.now()): string {
    const minutes = Math.floor((now - then) / 60_000);
    if (minutes < 1) {
        return "just now";
    }
    if (minutes < 60) {
        return `${minutes} min ago`;
    }
    if (minutes < 24 * 60) {
        return `${Math.floor(minutes / 60)} h ago`;
    }
    const date = new Date(then);
    return minutes < 7 * 24 * 60
        ? date.toLocaleDateString("en", { weekday: "long" })
        : date.toLocaleDateString("en", { day: "numeric", month: "short" });
}

/** A title from the first words of a text. */
export function titleOf(text: string): string {
    const line = text.trim().replace(/\s+/g, " ");
    if (line.length <= 48) {
        return line || "New chat";
    }
    const cut = line.slice(0, 48);
    const space = cut.lastIndexOf(" ");
    return `${cut.slice(0, space > 24 ? space : 48)}\u2026`;
}
