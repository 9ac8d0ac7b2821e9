import { useState } from "preact/hooks";
import type { RelaySecret, RelaySecretRotated } from "../../client/generated/api.ts";
import { send } from "./api.ts";
import { useAction } from "./load.ts";
import { ActionButton, ConfirmedButton, Copied, Failure, Time } from "./parts.tsx";

/** The signing secret of an endpoint, hidden until it is asked for. */
export function Secret({ path }: { path: string }) {
  const [secret, setSecret] = useState<string | null>(null);
  const [previousUntil, setPreviousUntil] = useState<number | null>(null);
  const action = useAction();
  const reveal = async (): Promise<void> => {
    const found = await send<RelaySecret>("POST", `${path}/secret`);
    setSecret(found.secret);
    setPreviousUntil(found.previous[0]?.expires_at ?? null);
  };
  const rotate = async (): Promise<void> => {
    const rotated = await send<RelaySecretRotated>("POST", `${path}/secret/rotate`, {});
    setSecret(rotated.secret);
    setPreviousUntil(rotated.previous_expires_at);
  };
  return (
    <section aria-labelledby="secret">
      <h2 id="secret">Signing secret</h2>
      <p class="quiet">
        Verify with it that events come from us, by any library of Standard Webhooks. Keep it on your server.
      </p>
      {secret === null ? null : (
        <p>
          <Copied text={secret} label="signing secret" />
        </p>
      )}
      {previousUntil === null ? null : (
        <p class="quiet">
          Events are also signed with the previous secret until <Time at={previousUntil} />.
        </p>
      )}
      <p class="buttons">
        {secret === null ? (
          <ActionButton action={action} onClick={() => void action.run(reveal)}>
            Show secret
          </ActionButton>
        ) : (
          <button type="button" onClick={() => setSecret(null)}>
            Hide secret
          </button>
        )}
        <ConfirmedButton action={action} ask="Really rotate?" onClick={() => void action.run(rotate)}>
          Rotate secret
        </ConfirmedButton>
      </p>
      <Failure problem={action.problem} />
    </section>
  );
}
