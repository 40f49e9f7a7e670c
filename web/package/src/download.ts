/** Downloads into the origin private file system. */
export interface DownloadRequest {
    url: string;
    name: string;
    sha256: string | null;
    parallel: number;
}

export interface DownloadProgress {
    stage: "download" | "verify";
    done: number;
    total: number;
}
