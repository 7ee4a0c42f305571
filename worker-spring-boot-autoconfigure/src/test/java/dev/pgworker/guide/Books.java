package dev.pgworker.guide;

import java.util.List;

import org.springframework.stereotype.Component;
import org.springframework.stereotype.Service;

import dev.pgworker.flow.AddedFlow;
import dev.pgworker.flow.FlowJob;
import dev.pgworker.flow.JobFlow;
import dev.pgworker.flow.JobFlows;
import dev.pgworker.flow.OnFailure;
import dev.pgworker.flow.PredecessorResult;
import dev.pgworker.flow.PredecessorResults;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobHandler;

/** The code of docs/flows.md. */
final class Books {

    private Books() {}

    interface Press {

        int pages(int chapter);

        void bind(String title, int pages);

        void apologize(String title);
    }

    @Service
    static class Printing {

        static final Task<Integer> RENDER = Task.of("render", Integer.class);
        static final Task<String> BIND = Task.of("bind", String.class);
        static final Task<String> APOLOGIZE = Task.of("apologize", String.class);

        private final JobFlows flows;

        Printing(JobFlows flows) {
            this.flows = flows;
        }

        long print(String title, List<Integer> chapters) {
            JobFlow flow = new JobFlow();
            List<FlowJob> rendered = flow.addAll(RENDER, chapters);
            FlowJob book = flow.add(BIND, title).after(rendered).onFailure(OnFailure.REMOVE);
            flow.add(APOLOGIZE, title).after(rendered).onFailure(OnFailure.INSTEAD);
            AddedFlow added = flows.add(flow);
            return added.job(book).id();
        }

        void printAgain(String title, long earlier) {
            JobFlow flow = new JobFlow();
            flow.add(BIND, title).afterJobs(earlier).onFailure(OnFailure.RUN);
            flows.add(flow);
        }
    }

    @Component
    static class BookHandlers {

        record Rendered(int pages) {}

        private final Press press;

        BookHandlers(Press press) {
            this.press = press;
        }

        @JobHandler("render")
        Rendered render(Integer chapter) {
            return new Rendered(press.pages(chapter));
        }

        @JobHandler("bind")
        void bind(String title, PredecessorResults chapters) {
            int pages = 0;
            for (PredecessorResult chapter : chapters.of(Printing.RENDER)) {
                pages += chapter.as(Rendered.class).pages();
            }
            press.bind(title, pages);
        }

        @JobHandler("apologize")
        void apologize(String title) {
            press.apologize(title);
        }
    }
}
