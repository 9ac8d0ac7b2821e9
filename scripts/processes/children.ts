/** Processes that must not outlive this one. */
const running = new Set<Bun.Subprocess>();

process.on("exit", killChildren);

/** Ensures that a process ends with this one, however this one ends. Returns it. */
export function endsWithUs<Child extends Bun.Subprocess>(child: Child): Child {
  running.add(child);
  void child.exited.then(() => running.delete(child));
  return child;
}

/** Kills what is still running. */
export function killChildren(): void {
  for (const child of running) child.kill("SIGKILL");
}
