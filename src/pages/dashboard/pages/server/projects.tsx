import type { ProjectItem } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { chooseProject, readProjects } from "../../core/login.ts";
import { useCall } from "../../core/resource.ts";
import { place, setQuery } from "../../core/route.ts";
import { ownProjects, projectId } from "../../core/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { DataForm } from "../../ui/form.tsx";
import { ListView } from "../../ui/list.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";

/** The projects of the account. */
export function ProjectsPage() {
  const list = useList("projects.list", "projects", ["projects"], { keyOf: ({ id }) => id });
  const changed = (): void => {
    list.reload();
    void readProjects();
  };
  const close = (): void => setQuery({ new: undefined });
  return (
    <Page
      title="Projects"
      lead="All data belongs to a project. The other pages show the project selected in the sidebar."
      request={requestOf("projects.list", {})}
      actions={
        <Button
          kind="primary"
          icon="new"
          operation="projects.create"
          disabled={ownProjects() !== null}
          onClick={() => setQuery({ new: "1" })}
        >
          New project
        </Button>
      }
    >
      <Panel flush>
        <ListView list={list} label="Projects" columns={columnsOf(changed)} />
      </Panel>
      {place.value.query.has("new") ? <ProjectForm onDone={changed} onClose={close} /> : null}
    </Page>
  );
}

function columnsOf(onChanged: () => void): readonly Column<ProjectItem>[] {
  return [
    {
      head: "Project",
      cell: ({ name }) => <strong>{name}</strong>,
      sub: ({ slug, description }) => (description === null ? slug : `${slug} · ${description}`),
    },
    { head: "Contents", cell: ({ id }) => <Contents id={id} />, layout: "wide" },
    { head: "Created", cell: ({ created_at }) => <Ago at={created_at} />, layout: "wide" },
    {
      head: "Actions",
      width: 16,
      layout: "fit",
      cell: (project) => (
        <div class="actions">
          <Button
            pressed={projectId.value === project.id}
            disabled={ownProjects()?.includes(project.id) === false}
            onClick={() => chooseProject(project.id, "overview")}
          >
            Open project
          </Button>
          <Button
            kind="quiet"
            icon="rename"
            label={`Edit ${project.name}`}
            operation="projects.update"
            onClick={() =>
              openDialog((close) => <ProjectForm of={project} onDone={onChanged} onClose={close} />)
            }
          />
          <Button
            kind="quiet"
            icon="delete"
            label={`Delete ${project.name}`}
            operation="projects.delete"
            onClick={() => deleteProject(project, onChanged)}
          />
        </div>
      ),
    },
  ];
}

function Contents({ id }: { id: string }) {
  const { data } = useCall("projects.overview", { params: { id } });
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

function ProjectForm(props: { of?: ProjectItem; onDone: () => void; onClose: () => void }) {
  const { of: project, onDone, onClose } = props;
  return (
    <DataForm
      title={project === undefined ? "New project" : `Edit ${project.name}`}
      submit={project === undefined ? "Create project" : "Save"}
      operation={project === undefined ? "projects.create" : "projects.update"}
      of={project}
      params={{ id: project?.id ?? "" }}
      fields={
        project === undefined
          ? ["name", "description", "time_zone"]
          : ["name", "description", "time_zone", "review"]
      }
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}

function deleteProject({ id, name }: ProjectItem, onDone: () => void): void {
  openDialog((close) => (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete project"
      typed={name}
      onConfirm={async () => {
        await call("projects.delete", { params: { id } });
        if (projectId.value === id) chooseProject(null);
        onDone();
      }}
      done={`${name} deleted`}
      onClose={close}
    >
      <p>
        Its keys stop working immediately, its monitors and deliveries stop, and all of its data is deleted.
        This cannot be undone.
      </p>
    </Confirm>
  ));
}
