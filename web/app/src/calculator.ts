/** Arithmetic for the tool "calculator". Whole numbers, fractions and decimals are computed exactly with + - * / and
 * whole powers; functions and roots in double precision. A parser of its own: nothing is evaluated as code. */

const MAX_LENGTH = 1000;
const MAX_DEPTH = 64;
/** Larger exact numbers would take long to compute and to read. */
const MAX_DIGITS = 2000;
/** Digits of a result that is not whole. */
const PRECISION = 15;

/** An exact fraction in lowest terms with a positive denominator, or a double. */
type Value = { n: bigint; d: bigint } | number;

const functions: Record<string, (...x: number[]) => number> = {
    sqrt: Math.sqrt, cbrt: Math.cbrt, sin: Math.sin, cos: Math.cos, tan: Math.tan, asin: Math.asin, acos: Math.acos, atan: Math.atan, exp: Math.exp, ln: Math.log, log: Math.log10,
    log10: Math.log10, log2: Math.log2, rad: (x) => (x * Math.PI) / 180, deg: (x) => (x * 180) / Math.PI,
};
const constants: Record<string, number> = { pi: Math.PI, "\u03c0": Math.PI, e: Math.E, tau: 2 * Math.PI };

const abs = (x: bigint): bigint => (x < 0n ? -x : x);

function fraction(n: bigint, d: bigint): Value {
    if (d === 0n) {
        throw new Error("Division by zero.");
    }
    let [a, b] = [abs(n), abs(d)];
    while (b > 0n) {
        [a, b] = [b, a % b];
    }
    const divisor = a || 1n;
    const sign = d < 0n ? -1n : 1n;
    if (abs(n).toString().length > MAX_DIGITS || abs(d).toString().length > MAX_DIGITS) {
        throw new Error(`The number has more than ${MAX_DIGITS} digits.`);
    }
    return { n: (sign * n) / divisor, d: (sign * d) / divisor };
}

const whole = (value: Value): bigint | null => (typeof value !== "number" && value.d === 1n ? value.n : null);

function toNumber(value: Value): number {
    if (typeof value === "number") {
        return value;
    }
    // Numbers beyond the doubles: the quotient of the leading digits.
    const shift = BigInt(Math.max(0, abs(value.d).toString(2).length - abs(value.n).toString(2).length + 64));
    return shift < 1000n ? Number((value.n << shift) / value.d) / 2 ** Number(shift) : 0;
}

function power(base: Value, exponent: Value): Value {
    const times = whole(exponent);
    if (typeof base === "number" || times === null || abs(times) > 100_000n) {
        return toNumber(base) ** toNumber(exponent);
    }
    const digits = Math.max(abs(base.n).toString().length, base.d.toString().length) * Number(abs(times));
    if (digits > 2 * MAX_DIGITS && abs(base.n) > 1n) {
        throw new Error(`The number has more than ${MAX_DIGITS} digits.`);
    }
    return times >= 0n ? fraction(base.n ** times, base.d ** times) : fraction(base.d ** -times, base.n ** -times);
}

function combine(a: Value, operator: string, b: Value): Value {
    if (operator === "^") {
        return power(a, b);
    }
    if (typeof a === "number" || typeof b === "number") {
        const [x, y] = [toNumber(a), toNumber(b)];
        if (y === 0 && (operator === "/" || operator === "%")) {
            throw new Error("Division by zero.");
        }
        return operator === "+" ? x + y : operator === "-" ? x - y : operator === "*" ? x * y : operator === "/" ? x / y : x - y * Math.floor(x / y);
    }
    switch (operator) {
        case "+":
            return fraction(a.n * b.d + b.n * a.d, a.d * b.d);
        case "-":
            return fraction(a.n * b.d - b.n * a.d, a.d * b.d);
        case "*":
            return fraction(a.n * b.n, a.d * b.d);
        case "/":
            return fraction(a.n * b.d, a.d * b.n);
        default: {
            const [x, y] = [a.n * b.d, b.n * a.d];
            if (y === 0n) {
                throw new Error("Division by zero.");
            }
            return fraction(((x % y) + y) % y, a.d * b.d);
        }
    }
}

class Parser {
    readonly #text: string;
    #at = 0;
    #depth = 0;

    constructor(text: string) {
        this.#text = text;
    }

    whole(): Value {
        const value = this.#sum();
        this.#space();
        if (this.#at < this.#text.length) {
            throw this.#unexpected();
        }
        return value;
    }

    #unexpected(): Error {
        const rest = this.#text.slice(this.#at, this.#at + 20);
        return new Error(rest === "" ? "The expression ends too early." : `Unexpected "${rest}" at character ${this.#at + 1}.`);
    }

    #space(): void {
        while (/\s/.test(this.#text[this.#at] ?? "")) {
            this.#at++;
        }
    }

    /** Takes one of these operators; null: another one follows. */
    #take(...operators: string[]): string | null {
        this.#space();
        const found = operators.find((operator) => this.#text.startsWith(operator, this.#at));
        this.#at += found?.length ?? 0;
        return found ?? null;
    }

    #within(act: () => Value): Value {
        if (++this.#depth > MAX_DEPTH) {
            throw new Error("The expression is nested too deeply.");
        }
        const value = act();
        this.#depth--;
        return value;
    }

    #sum(): Value {
        let value = this.#product();
        for (let operator = this.#take("+", "-", "\u2212"); operator !== null; operator = this.#take("+", "-", "\u2212")) {
            value = combine(value, operator === "+" ? "+" : "-", this.#product());
        }
        return value;
    }

    #product(): Value {
        let value = this.#signed();
        for (;;) {
            const operator = this.#take("*", "\u00d7", "\u00b7", "/", "\u00f7", "%", "mod");
            if (operator === null) {
                return value;
            }
            const kind = operator === "/" || operator === "\u00f7" ? "/" : operator === "%" || operator === "mod" ? "%" : "*";
            value = combine(value, kind, this.#signed());
        }
    }

    #signed(): Value {
        return this.#within(() => {
            if (this.#take("-", "\u2212") !== null) {
                return combine({ n: 0n, d: 1n }, "-", this.#signed());
            }
            return this.#take("+") !== null ? this.#signed() : this.#power();
        });
    }

    #power(): Value {
        const base = this.#factorial();
        return this.#take("^", "**") !== null ? power(base, this.#signed()) : base;
    }

    #factorial(): Value {
        const value = this.#atom();
        if (this.#take("!") === null) {
            return value;
        }
        const n = whole(value);
        if (n === null || n < 0n || n > 700n) {
            throw new Error("Factorials are of whole numbers from 0 to 700.");
        }
        let product = 1n;
        for (let i = 2n; i <= n; i++) {
            product *= i;
        }
        return { n: product, d: 1n };
    }

    #atom(): Value {
        if (this.#take("(") !== null) {
            return this.#closed(this.#within(() => this.#sum()));
        }
        const rest = this.#text.slice(this.#at, this.#at + 400);
        const [number] = /^(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?/.exec(rest) ?? [];
        if (number !== undefined) {
            this.#at += number.length;
            return this.#number(number.replaceAll("_", ""));
        }
        const [name] = /^[a-z\u03c0][a-z0-9]*/i.exec(rest) ?? [];
        if (name === undefined) {
            throw this.#unexpected();
        }
        this.#at += name.length;
        return this.#named(name.toLowerCase());
    }

    #closed(value: Value): Value {
        if (this.#take(")") === null) {
            throw this.#unexpected();
        }
        return value;
    }

    #number(text: string): Value {
        const [mantissa = "", exponent = "0"] = text.toLowerCase().split("e");
        const [before = "", after = ""] = mantissa.split(".");
        const scale = Number(exponent) - after.length;
        const n = BigInt(before + after || "0");
        return scale >= 0 ? fraction(n * 10n ** BigInt(scale), 1n) : fraction(n, 10n ** BigInt(-scale));
    }

    #named(name: string): Value {
        const constant = Object.hasOwn(constants, name) ? constants[name] : undefined;
        if (constant !== undefined) {
            return constant;
        }
        if (this.#take("(") === null) {
            throw new Error(`"${name}" is not known.`);
        }
        const values = [this.#within(() => this.#sum())];
        while (this.#take(",") !== null) {
            values.push(this.#within(() => this.#sum()));
        }
        const [first = 0] = values;
        this.#closed(first);
        return this.#call(name, values);
    }

    #call(name: string, values: Value[]): Value {
        const [first = 0] = values;
        if (name === "min" || name === "max") {
            return values.reduce((best, value) => (toNumber(value) < toNumber(best) === (name === "min") ? value : best));
        }
        if (values.length > 1) {
            throw new Error(`"${name}" takes one number.`);
        }
        if (name === "abs") {
            return typeof first === "number" ? Math.abs(first) : { n: abs(first.n), d: first.d };
        }
        if (name === "floor" || name === "ceil" || name === "round") {
            const value = toNumber(first);
            const rounded = name === "floor" ? Math.floor(value) : name === "ceil" ? Math.ceil(value) : Math.round(value);
            return whole(first) !== null ? first : Number.isSafeInteger(rounded) ? { n: BigInt(rounded), d: 1n } : rounded;
        }
        const call = Object.hasOwn(functions, name) ? functions[name] : undefined;
        if (!call) {
            throw new Error(`"${name}" is not known.`);
        }
        const result = call(toNumber(first));
        return name === "sqrt" && Number.isSafeInteger(result) && whole(first) === BigInt(result) ** 2n ? { n: BigInt(result), d: 1n } : result;
    }
}

function show(value: Value): string {
    const n = whole(value);
    if (n !== null) {
        return n.toString();
    }
    const number = toNumber(value);
    if (!Number.isFinite(number)) {
        throw new Error("The result is not a finite number.");
    }
    const rounded = String(Number(number.toPrecision(PRECISION)));
    return typeof value === "number" || value.d > 1_000_000n ? rounded : `${rounded} (exactly ${value.n}/${value.d})`;
}

/** The value of an expression; rejects with a sentence about what is wrong with it. */
export function calculate(expression: string): string {
    if (expression.length > MAX_LENGTH) {
        throw new Error(`The expression is longer than ${MAX_LENGTH} characters.`);
    }
    return show(new Parser(expression.replace(/=\s*$/, "")).whole());
}
