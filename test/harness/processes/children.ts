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

/** Runs a program to its end and returns its output. @throws Error with its whole output if it fails. */
export async function run(command: readonly string[], cwd?: string): Promise<string> {
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    ...(cwd === undefined ? {} : { cwd }),
  });
  endsWithUs(child);
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${command.join(" ")} failed (${code}): ${out}${error}`);
  return out;
}
