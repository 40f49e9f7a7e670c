/** An observable value. */
export class Signal<T> {
    #value: T;
    readonly #listeners = new Set<(value: T) => void>();

    constructor(value: T) {
        this.#value = value;
    }

    get value(): T {
        return this.#value;
    }

    set(value: T): void {
        this.#value = value;
        this.#listeners.forEach((listener) => listener(value));
    }

    /** Calls the listener now and after every change. */
    watch(listener: (value: T) => void): void {
        this.#listeners.add(listener);
        listener(this.#value);
    }
}
