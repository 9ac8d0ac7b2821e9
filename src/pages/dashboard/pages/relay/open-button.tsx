import type { OperationName } from "../../../../client/api.ts";
import { setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";

/** Opens a dialog, whose name is a parameter of the address. */
export function OpenButton(props: { name: string; operation: OperationName; children: string }) {
  const { name, operation, children } = props;
  return (
    <Button operation={operation} onClick={() => setQuery({ [name]: "1" })}>
      {children}
    </Button>
  );
}
