/** A readable GPU name. Browsers report little: "nvidia", "ampere". */
const VENDORS: Record<string, string> = {
    amd: "AMD",
    apple: "Apple",
    arm: "Arm",
    google: "Google",
    "img-tec": "Imagination",
    intel: "Intel",
    microsoft: "Microsoft",
    nvidia: "NVIDIA",
    qualcomm: "Qualcomm",
    samsung: "Samsung",
};

/** "ampere" -> "Ampere", "rdna-3" -> "RDNA-3", "gen-12lp" -> "Gen-12lp". */
function architectureName(architecture: string): string {
    const first = architecture.charAt(0).toUpperCase() + architecture.slice(1);
    return /^[a-z]{2,4}-\d/i.test(architecture) && !/^gen/i.test(architecture) ? architecture.toUpperCase() : first;
}

export function adapterName({ description, device, vendor, architecture }: GPUAdapterInfo): string {
    if (description || device) {
        return description || device;
    }
    return [VENDORS[vendor] ?? vendor, architectureName(architecture)].filter(Boolean).join(" ") || "unknown GPU";
}
