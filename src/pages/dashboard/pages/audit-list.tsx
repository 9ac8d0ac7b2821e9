import type { Actor, AuditEntry } from "../../../client/generated/api.ts";
import { useList } from "../core/lists.ts";
import { href } from "../core/route.ts";
import { mayCall, session } from "../core/session.ts";
import { Pager } from "../ui/feedback.tsx";
import { Panel } from "../ui/page.tsx";
import { Ago } from "../ui/time.tsx";

/** The actor's name. */
export function actorOf({ actor }: AuditEntry): string {
  return actor.by === undefined ? nameOf(actor) : `${nameOf(actor.by)}, as scheduled`;
}

/** The name of a key or a person. */
export function nameOf(actor: Actor | AuditEntry["actor"]): string {
  // Its account is the one that it concerns.
  if (actor.type === "public") return "a request without login";
  const who = session.value;
  const isOwn = actor.user_id !== null && actor.user_id === who?.user_id;
  return actor.name ?? actor.email ?? actor.key_name ?? (isOwn ? who?.email : actor.user_id) ?? actor.type;
}

/** Changes, newest first, each with a link to its entry in the audit log. */
export function AuditList({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <ul class="log">
      {entries.map((entry) => (
        <li key={entry.sequence}>
          <span>
            <a href={href(["audit", entry.sequence])}>{entry.summary}</a>{" "}
            <span class="quiet">by {actorOf(entry)}</span>
          </span>
          <span class="quiet small">
            <Ago at={entry.at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The changes of one resource. */
export function History({ type, id }: { type: string; id: string }) {
  if (!mayCall("audit.list")) return null;
  return <HistoryOf type={type} id={id} />;
}

function HistoryOf({ type, id }: { type: string; id: string }) {
  const list = useList("audit.list", "entries", ["audit"], {
    keyOf: ({ sequence }) => sequence,
    query: { target_type: type, target_id: id },
  });
  if (list.data === null || list.data.length === 0) return null;
  return (
    <Panel title="History">
      <AuditList entries={list.data} />
      <Pager of={list} />
    </Panel>
  );
}
