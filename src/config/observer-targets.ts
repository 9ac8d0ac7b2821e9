import { StartupError } from "../kernel/errors.ts";

/** More hosts would not make the check more reliable. */
const OBSERVER_TARGETS_MAX = 5;
const HOST_AND_PORT = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}$/;

/**
 * Checks the hosts that show whether a machine is online. `name`: of the option.
 * @throws StartupError for what is no host and port, and for too many
 */
export function assertObserverTargets(name: string, targets: readonly string[]): void {
  if (targets.length > OBSERVER_TARGETS_MAX)
    throw new StartupError(`${name}: at most ${OBSERVER_TARGETS_MAX} hosts can be named.`);
  for (const target of targets) {
    const port = Number(target.slice(target.lastIndexOf(":") + 1));
    if (HOST_AND_PORT.test(target) && port > 0 && URL.canParse(`http://${target}`)) continue;
    throw new StartupError(`${name}: "${target}" is not a host and port such as 192.0.2.1:53.`);
  }
}
