/**
 * Ends the policy that the executable starts with (see `scripts/build`), under which only long loops are compiled. A start
 * leaves its code, nearly all of which runs once, to the interpreter, and so does a server until it has work: compilers would
 * take memory and time for code that runs once a second.
 */
export function useUsualJitPolicy(): void {
  Bun.unsafe.setJITPolicy(1);
}
