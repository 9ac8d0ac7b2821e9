import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading } from "./feedback.tsx";

/** A page or form whose code is loaded when it is first shown, so that the console starts faster. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return (props) => {
    const [, redraw] = useState(false);
    useEffect(() => {
      if (loaded !== null) return;
      void load().then((page) => {
        loaded = page;
        redraw(true);
      });
    }, []);
    const Page = loaded;
    return Page === null ? <Loading /> : <Page {...props} />;
  };
}
