/**
 * A commit that takes longer is repeated before it counts. PostgreSQL reports a wait that was cancelled as a success with a notice,
 * and nobody cancels a wait of less.
 */
const CANCELLED_MS_MIN = 500;
/** Commits of one entry: nobody cancels so many in a row, and a server that is just slow must confirm some time. */
const COMMITS_MAX = 3;

/**
 * Commits until it is certain that the synchronous standbys have it: `commit` can be repeated, and each one waits for everything
 * before it.
 */
export async function commitOnStandbys(commit: () => Promise<void>, monotonic: () => number): Promise<void> {
  for (let attempt = 1; attempt <= COMMITS_MAX; attempt += 1) {
    const before = monotonic();
    await commit();
    // Somebody may have cancelled a wait for the standbys that took long. Then the commit succeeds with a mere notice.
    if (monotonic() - before < CANCELLED_MS_MIN) return;
  }
}
