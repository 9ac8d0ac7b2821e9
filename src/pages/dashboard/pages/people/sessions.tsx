import { call } from "../../core/api.ts";
import { count } from "../../core/format.ts";
import { logOut } from "../../core/login.ts";
import { useCall } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Loaded } from "../../ui/feedback.tsx";
import { Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { browserOf } from "./browser-name.ts";
import { methodName } from "./person-words.tsx";

/** The user's own sessions. */
export function OwnSessions() {
  const sessions = useCall("people.me.sessions.list", {}, ["people"]);
  const endOthers = async (): Promise<void> => {
    const { ended } = await call("people.me.sessions.end_others", {});
    toast(`${count(ended, "session")} ended`);
    sessions.reload();
  };
  const end = async (id: number): Promise<void> => {
    await call("people.me.sessions.end", { params: { session_id: String(id) } });
    sessions.reload();
  };
  const hasOthers = (sessions.data?.sessions.length ?? 0) > 1;
  return (
    <Panel
      title="Sessions"
      flush
      actions={
        <Button disabled={!hasOthers} onClick={endOthers}>
          End all others
        </Button>
      }
    >
      <Loaded of={sessions}>
        {({ sessions: all }) => (
          <Table
            label="Sessions"
            rows={all}
            keyOf={({ session_id }) => String(session_id)}
            columns={[
              {
                head: "Browser",
                cell: ({ user_agent, current }) => (
                  <>
                    {browserOf(user_agent)} {current ? <span class="tag">this one</span> : null}
                  </>
                ),
                sub: ({ ip, method }) => `${ip ?? "unknown address"} · by ${methodName(method)}`,
              },
              { head: "Began", cell: ({ created_at }) => <Ago at={created_at} />, layout: "fit wide" },
              {
                head: "Last used",
                cell: ({ last_used_at }) => <Ago at={last_used_at} />,
                layout: "fit wide",
              },
              {
                head: "Actions",
                cell: ({ session_id, current, user_agent }) => (
                  <Button
                    label={`${current ? "Log out" : "End"}: ${browserOf(user_agent)}, session ${session_id}`}
                    onClick={() => (current ? logOut() : end(session_id))}
                  >
                    {current ? "Log out" : "End"}
                  </Button>
                ),
                layout: "fit",
              },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}
