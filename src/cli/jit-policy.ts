/**
 * Ends the policy that the executable starts with (see `scripts/build`), under which only long loops are compiled. Until then
 * a start leaves its code, nearly all of which runs once, to the interpreter.
 */
export function useUsualJitPolicy(): void {
  Bun.unsafe.setJITPolicy(1);
}
