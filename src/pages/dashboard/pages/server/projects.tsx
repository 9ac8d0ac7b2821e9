import { useState } from "preact/hooks";
import type { ProjectItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count } from "../../core/format.ts";
import { useList, useResource } from "../../core/resource.ts";
import { go, place, setQuery } from "../../core/route.ts";
import { chooseProject, projectId, readProjects, session } from "../../core/session.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, Dialog, Form } from "../../ui/dialog.tsx";
import { Loaded, More } from "../../ui/feedback.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";

type Action = readonly ["rename" | "delete", ProjectItem];

/** The projects of the account. */
export function ProjectsPage() {
  const [action, setDeed] = useState<Action | null>(null);
  const list = useList("projects", ["projects"], async (query, signal) => {
    const page = await call("projects.list", { query }, signal);
    return { items: page.projects, cursor: page.cursor ?? null };
  });
  const changed = (): void => {
    list.reload();
    void readProjects();
  };
  const close = (): void => {
    setDeed(null);
    setQuery({ new: undefined });
  };
  return (
    <Page
      title="Projects"
      lead="All data belongs to a project. The other pages show the project selected in the sidebar."
      request={requestOf("projects.list", {})}
      actions={
        <Button
          kind="primary"
          icon="new"
          scope="projects:write"
          disabled={session.value?.project_id !== null}
          onClick={() => setQuery({ new: "1" })}
        >
          New project
        </Button>
      }
    >
      <Panel flush>
        <Loaded of={list}>
          {(projects) => (
            <>
              <ProjectTable of={projects} onDeed={setDeed} />
              <More of={list} />
            </>
          )}
        </Loaded>
      </Panel>
      {place.value.query.has("new") ? <ProjectForm onDone={changed} onClose={close} /> : null}
      {action?.[0] === "rename" ? <ProjectForm of={action[1]} onDone={changed} onClose={close} /> : null}
      {action?.[0] === "delete" ? <DeleteProject of={action[1]} onDone={changed} onClose={close} /> : null}
    </Page>
  );
}

function ProjectTable({
  of: projects,
  onDeed,
}: {
  of: readonly ProjectItem[];
  onDeed: (action: Action) => void;
}) {
  return (
    <Table
      label="Projects"
      rows={projects}
      keyOf={({ id }) => id}
      columns={[
        {
          head: "Project",
          cell: ({ name, slug, description }) => (
            <>
              <strong>{name}</strong>
              <span class="sub">{description === null ? slug : `${slug} · ${description}`}</span>
            </>
          ),
        },
        { head: "Contents", cell: ({ id }) => <Contents id={id} />, layout: "wide" },
        { head: "Created", cell: ({ created_at }) => <Ago at={created_at} />, layout: "wide" },
        {
          head: "Actions",
          layout: "fit",
          cell: (project) => (
            <div class="actions">
              <Button
                pressed={projectId.value === project.id}
                disabled={session.value?.project_id !== null}
                onClick={() => {
                  chooseProject(project.id);
                  go(["overview"]);
                }}
              >
                Open project
              </Button>
              <Button
                kind="quiet"
                icon="rename"
                label={`Rename ${project.name}`}
                scope="projects:write"
                onClick={() => onDeed(["rename", project])}
              >
                {null}
              </Button>
              <Button
                kind="quiet"
                icon="delete"
                label={`Delete ${project.name}`}
                scope="projects:write"
                onClick={() => onDeed(["delete", project])}
              >
                {null}
              </Button>
            </div>
          ),
        },
      ]}
    />
  );
}

function Contents({ id }: { id: string }) {
  const { data } = useResource(`project ${id}`, [], (signal) =>
    call("projects.overview", { params: { id } }, signal),
  );
  if (data === null) return null;
  const { keys, flags, monitors, buckets, meters } = data.resources;
  const parts = [
    [keys, "key"],
    [flags, "flag"],
    [monitors, "monitor"],
    [buckets, "bucket"],
    [meters, "meter"],
  ] as const;
  const contents = parts.filter(([number]) => number > 0).map(([number, name]) => count(number, name));
  return (
    <>
      {contents.length === 0 ? <span class="quiet">empty</span> : contents.join(", ")}
      <span class="sub">
        last change <Ago at={data.usage.last_activity} />
      </span>
    </>
  );
}

function ProjectForm({
  of: project,
  onDone,
  onClose,
}: {
  of?: ProjectItem;
  onDone: () => void;
  onClose: () => void;
}) {
  return (
    <Dialog title={project === undefined ? "New project" : `Rename ${project.name}`} onClose={onClose}>
      <Form
        submit={project === undefined ? "Create project" : "Save"}
        onCancel={onClose}
        onSubmit={async (data) => {
          const body = { name: textOf(data, "name") ?? "", description: textOf(data, "description") ?? null };
          if (project === undefined) await call("projects.create", { body });
          else await call("projects.update", { params: { id: project.id }, body });
          onDone();
          onClose();
        }}
      >
        <TextField name="name" label="Name" value={project?.name} required />
        <TextField name="description" label="Description" value={project?.description ?? undefined} />
      </Form>
    </Dialog>
  );
}

function DeleteProject({
  of: project,
  onDone,
  onClose,
}: {
  of: ProjectItem;
  onDone: () => void;
  onClose: () => void;
}) {
  return (
    <Confirm
      title={`Delete ${project.name}?`}
      action="Delete project"
      typed={project.name}
      onClose={onClose}
      onConfirm={async () => {
        await call("projects.delete", { params: { id: project.id } });
        if (projectId.value === project.id) chooseProject(null);
        toast(`${project.name} deleted`);
        onDone();
      }}
    >
      <p>
        Its keys stop working immediately, its monitors and deliveries stop, and all of its data is deleted.
        This cannot be undone.
      </p>
    </Confirm>
  );
}
