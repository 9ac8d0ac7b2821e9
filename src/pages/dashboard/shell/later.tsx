import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading } from "../ui/feedback.tsx";

/** What is loaded when it is first looked at, a page or a form: few do, and everybody would wait for it. */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
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
