import { useState } from "preact/hooks";
import type {
  PortalEndpoint,
  RelayEndpointSecret,
  RelayEndpointSecretRotated,
} from "../../client/generated/api.ts";
import { send } from "./api.ts";
import { useAction } from "./load.ts";
import { ActionButton, ConfirmedButton, Copied, Failure, Time } from "./parts.tsx";

const OF_BODY = "The key is the text of the secret; the signature is HMAC-SHA256 of the body";
/** How events are verified, by scheme. */
const USES: Readonly<Record<NonNullable<PortalEndpoint["signature"]>["scheme"], string>> = {
  standard:
    "Verify with it that events come from us, by any library of Standard Webhooks. Keep it on your server.",
  "hmac-sha256-hex": `${OF_BODY}, in hex. Keep the secret on your server.`,
  "hmac-sha256-base64": `${OF_BODY}, in base64. Keep the secret on your server.`,
  stripe: "Verify with it that events come from us, as webhooks of Stripe. Keep it on your server.",
  ed25519:
    "Verify with it that events come from us: webhook-signature is an Ed25519 signature of Standard Webhooks.",
};

/** What the previous secret is used for after a rotation. Of HMACs, receivers read one. */
function previousUse(signature: PortalEndpoint["signature"]): string {
  if (signature?.header === undefined || signature.scheme === "stripe")
    return "Events are also signed with the previous secret";
  return signature.grace === "old"
    ? "Events are signed with the previous secret"
    : "Events are signed with the new secret; the previous one is stored";
}

/** The signing secret of an endpoint, hidden until it is asked for, or its public key. */
export function Secret({ path, endpoint }: { path: string; endpoint: PortalEndpoint }) {
  const { signature } = endpoint;
  const isPublic = signature?.scheme === "ed25519";
  const [secret, setSecret] = useState<string | null>(null);
  const [previousUntil, setPreviousUntil] = useState<number | null>(null);
  const action = useAction();
  const reveal = async (): Promise<void> => {
    const found = await send<RelayEndpointSecret>("POST", `${path}/secret`);
    setSecret(found.secret ?? found.public_key);
    setPreviousUntil(found.previous[0]?.expires_at ?? null);
  };
  const rotate = async (): Promise<void> => {
    const rotated = await send<RelayEndpointSecretRotated>("POST", `${path}/secret/rotate`, {});
    setSecret(rotated.secret ?? rotated.public_key);
    setPreviousUntil(rotated.previous_expires_at);
  };
  return (
    <section aria-labelledby="secret">
      <h2 id="secret">{isPublic ? "Public key" : "Signing secret"}</h2>
      <p class="quiet">{USES[signature?.scheme ?? "standard"]}</p>
      {signature?.header === undefined ? null : (
        <p class="quiet">
          The signature is in the header <code>{signature.header}</code>
          {signature.prefix === undefined ? null : (
            <>
              , after <code>{signature.prefix}</code>
            </>
          )}
          {signature.timestamp_header === undefined ? null : (
            <>
              , its time in <code>{signature.timestamp_header}</code>
            </>
          )}
          .
        </p>
      )}
      {secret === null ? null : (
        <p>
          <Copied text={secret} label={isPublic ? "public key" : "signing secret"} />
        </p>
      )}
      {previousUntil === null ? null : (
        <p class="quiet">
          {previousUse(signature)} until <Time at={previousUntil} />.
        </p>
      )}
      <p class="buttons">
        {secret === null ? (
          <ActionButton action={action} onClick={() => void action.run(reveal)}>
            {isPublic ? "Show key" : "Show secret"}
          </ActionButton>
        ) : (
          <button type="button" onClick={() => setSecret(null)}>
            {isPublic ? "Hide key" : "Hide secret"}
          </button>
        )}
        <ConfirmedButton action={action} ask="Really rotate?" onClick={() => void action.run(rotate)}>
          {isPublic ? "Rotate key" : "Rotate secret"}
        </ConfirmedButton>
      </p>
      <Failure problem={action.problem} />
    </section>
  );
}
