import { useEffect, useRef } from "preact/hooks";
import type { PortalLink } from "../../client/generated/api.ts";
import { Problem, send } from "./api.ts";
import { useLoaded } from "./load.ts";
import { Failure } from "./parts.tsx";
import { currentToken, proposed, switchToProposed } from "./session.ts";

/** The customer of a link; null when the link is not valid. @throws Problem when the server does not respond. */
async function customerOf(token: string): Promise<string | null> {
  try {
    return (await send<PortalLink>("GET", "", undefined, token)).owner_id;
  } catch (error) {
    if (error instanceof Problem && (error.status === 401 || error.status === 403)) return null;
    throw error;
  }
}

/**
 * Asks whether a link of another customer may replace the page that is in use. A link of the same customer replaces it without a
 * question, and so does every link when the one in use is not valid any more.
 */
export function SwitchQuestion({ token }: { token: string }) {
  const { value, problem } = useLoaded(token, async () => {
    const [current, other] = await Promise.all([customerOf(currentToken()), customerOf(token)]);
    return { current, other };
  });
  const heading = useRef<HTMLHeadingElement>(null);
  const isSwitched = value !== null && (value.current === null || value.current === value.other);
  useEffect(() => {
    if (isSwitched) switchToProposed();
    else heading.current?.focus();
  }, [value]);
  const stay = (): void => {
    proposed.value = null;
  };
  if (problem === null && (value === null || isSwitched))
    return (
      <main>
        <p class="quiet">Loading…</p>
      </main>
    );
  return (
    <main>
      <header>
        <h1 tabIndex={-1} ref={heading}>
          Another link was opened
        </h1>
      </header>
      <Failure problem={problem} />
      {value === null ? null : value.other === null ? (
        <p>
          It has expired or was revoked. The page is still open for{" "}
          <strong class="url">{value.current}</strong>.
        </p>
      ) : (
        <p>
          The page is in use for <strong class="url">{value.current}</strong>. The link that was opened is for{" "}
          <strong class="url">{value.other}</strong>.
        </p>
      )}
      <p class="buttons">
        <button type="button" class="main" onClick={stay}>
          Stay
        </button>
        {value === null || value.other === null ? null : (
          <button type="button" onClick={switchToProposed}>
            Switch
          </button>
        )}
      </p>
    </main>
  );
}
