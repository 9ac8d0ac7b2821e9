import { useEffect, useRef } from "preact/hooks";
import type { PortalLink } from "../../client/generated/api.ts";
import { send } from "./api.ts";
import { Delivery } from "./delivery.tsx";
import { Endpoint } from "./endpoint.tsx";
import { Endpoints } from "./endpoints.tsx";
import { useLoaded } from "./load.ts";
import { Failure } from "./parts.tsx";
import { place, proposed, visit } from "./session.ts";
import { SwitchQuestion } from "./switch-question.tsx";

/** The page, anew for each link that it is opened with. It is hidden, with all that was entered, while another link is open. */
export function App() {
  const { value: token } = proposed;
  return (
    <>
      {token === null ? null : <SwitchQuestion key={token} token={token} />}
      <div hidden={token !== null}>
        <Page key={visit.value} />
      </div>
    </>
  );
}

/** The customer's endpoints, one of them, or one of its deliveries. */
function Page() {
  const { value: link, problem } = useLoaded("link", () => send<PortalLink>("GET", ""));
  if (problem !== null) {
    const isOver = problem.status === 401 || problem.status === 403;
    return (
      <main>
        <h1>Webhooks</h1>
        {isOver ? (
          <p role="alert">This link has expired. Open this page again where you found it.</p>
        ) : (
          <Failure problem={problem} />
        )}
      </main>
    );
  }
  return <main>{link === null ? <p class="quiet">Loading…</p> : <Place link={link} />}</main>;
}

function Place({ link }: { link: PortalLink }) {
  const [kind, id] = place.value;
  const name = place.value.join("/");
  const view = useRef<HTMLDivElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    // A new place is announced by its heading.
    if (!isFirst.current) view.current?.querySelector("h1")?.focus();
    isFirst.current = false;
  }, [name]);
  return (
    <div ref={view} key={name}>
      {kind === "endpoints" && id !== undefined ? (
        <Endpoint id={id} link={link} />
      ) : kind === "deliveries" && id !== undefined ? (
        <Delivery id={id} />
      ) : (
        <Endpoints link={link} />
      )}
    </div>
  );
}
