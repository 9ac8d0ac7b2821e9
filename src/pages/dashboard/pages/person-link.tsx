import { call } from "../core/api.ts";
import { useResource } from "../core/resource.ts";
import { href } from "../core/route.ts";
import { mayCall } from "../core/session.ts";

/** A person by name, with a link for those who manage people; the id of a person who has been deleted. */
export function PersonLink({ id, name }: { id: string; name?: string }) {
  const isManager = mayCall("people.read");
  const isRead = isManager && name === undefined;
  const person = useResource(isRead ? `person name ${id}` : null, [], (signal) =>
    call("people.read", { params: { person_id: id } }, signal).catch(() => null),
  );
  const text = name ?? person.data?.name ?? person.data?.email ?? id;
  return isManager ? <a href={href(["people", id])}>{text}</a> : text;
}
