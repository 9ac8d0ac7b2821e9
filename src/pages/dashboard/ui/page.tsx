import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Request } from "../core/api.ts";
import { CurlButton } from "./button.tsx";
import { OpenedDialog } from "./dialog.tsx";
import { Icon } from "./icon.tsx";

interface PageProps {
  readonly title: string;
  /** Next to the title. */
  readonly status?: ComponentChildren;
  /** One line below the title. */
  readonly lead?: ComponentChildren;
  /** Address and title of the parent page. */
  readonly up?: readonly [href: string, name: string];
  /** The request that returns the data of the page. */
  readonly request?: Request;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A page: title, state, actions and content. */
export function Page({ title, status, lead, up, request, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Ninefold`;
  }, [title]);
  return (
    <>
      {up === undefined ? null : (
        <a class="up" href={up[0]}>
          <Icon name="back" />
          {up[1]}
        </a>
      )}
      <header class="title">
        <div>
          <h1>{title}</h1>
          {status}
        </div>
        <div class="actions">
          {request === undefined ? null : <CurlButton request={request} />}
          {actions}
        </div>
      </header>
      {lead === undefined ? null : <p class="lead quiet">{lead}</p>}
      {children}
      <OpenedDialog />
    </>
  );
}

/** A framed section of a page. */
export function Panel(props: {
  title?: string;
  actions?: ComponentChildren;
  flush?: boolean;
  children: ComponentChildren;
}) {
  const { title, actions, flush = false, children } = props;
  return (
    <section class={`panel ${flush ? "flush" : ""}`}>
      {title === undefined ? null : (
        <header>
          <h2>{title}</h2>
          {actions}
        </header>
      )}
      {children}
    </section>
  );
}

/** A fact whose value is an id or a hash, which may be broken anywhere. */
export function longFact(name: string, value: string | null): readonly [string, ComponentChildren] {
  return [name, value === null ? "–" : <code class="long">{value}</code>];
}

/** A list of names and values. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
