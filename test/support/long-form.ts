/** Whether repeated work has its long form: `scripts/test --long` runs the files that import this module so. */
export const IS_LONG = process.env["NINEFOLD_TEST_LONG"] === "1";

/** How often something is repeated: `short` in every run of the tests, `long` in `scripts/test --long`. */
export function repeated(short: number, long: number): number {
  return IS_LONG ? long : short;
}
