import { lazy } from "./lazy.tsx";

/** A form that is derived from the schema of an operation. Its code and the schemas are loaded when it is first shown. */
export const DataForm = lazy(
  async () => (await import("./data-form.tsx")).DataForm as never,
) as unknown as typeof import("./data-form.tsx").DataForm;
