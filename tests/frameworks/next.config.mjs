/** A static page: the model runs in the browser. */
export default { output: "export" };
