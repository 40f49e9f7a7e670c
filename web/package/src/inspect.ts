/** What a model's header says, and whether it can run here. */
export interface Inspection {
    /** Opening would succeed; else `code` and `text` say why not. */
    runs: boolean;
    code: string;
    text: string;
}
