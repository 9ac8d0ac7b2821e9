/**
 * The processor time of the longest turn of the event loop while something runs, in milliseconds. It counts this process
 * alone, so that a busy machine does not show.
 */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let running = true;
  const watch = (async () => {
    while (running) {
      const from = process.threadCpuUsage();
      await new Promise(setImmediate);
      const { user, system } = process.threadCpuUsage(from);
      longest = Math.max(longest, (user + system) / 1000);
    }
  })();
  await work();
  running = false;
  await watch;
  return longest;
}
