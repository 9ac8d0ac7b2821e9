import { call } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { href } from "../../core/route.ts";
import { mayCall } from "../../core/session.ts";

/** A link to a monitor with its name; the id of a deleted one. */
export function MonitorLink({ id }: { id: string }) {
  const monitor = useResource(mayCall("monitors.read") ? `monitor name ${id}` : null, [], (signal) =>
    call("monitors.read", { params: { monitorId: id } }, signal),
  );
  return <a href={href(["monitors", id])}>{monitor.data?.name ?? id}</a>;
}
