package dev.pgworker.test;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.support.AutowireCandidateQualifier;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.context.EnvironmentAware;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;

import dev.pgworker.autoconfigure.WorkerInstances;

/** Registers a {@link TestWorker} for each of {@code pgworker.instances}, to be injected with the name as its qualifier. */
final class TestWorkerBeans implements ImportBeanDefinitionRegistrar, EnvironmentAware {

    private @Nullable Environment environment;

    @Override
    public void setEnvironment(Environment environment) {
        this.environment = environment;
    }

    @Override
    public void registerBeanDefinitions(AnnotationMetadata importing, BeanDefinitionRegistry registry) {
        if (environment != null) {
            WorkerInstances.names(environment).forEach(name -> register(name, registry));
        }
    }

    private static void register(String name, BeanDefinitionRegistry registry) {
        RootBeanDefinition definition = new RootBeanDefinition(TestWorker.class);
        definition.setFactoryBeanName(TestWorkerFactory.BEAN);
        definition.setFactoryMethodName("testWorker");
        definition.getConstructorArgumentValues().addIndexedArgumentValue(0, name);
        definition.setDefaultCandidate(false);
        definition.addQualifier(new AutowireCandidateQualifier(Qualifier.class, name));
        definition.setDestroyMethodName("");
        registry.registerBeanDefinition(name + "-test-worker", definition);
    }
}
