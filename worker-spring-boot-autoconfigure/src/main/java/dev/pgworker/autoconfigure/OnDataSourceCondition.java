package dev.pgworker.autoconfigure;

import javax.sql.DataSource;

import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.ConfigurationCondition;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Matches if there is a data source, one that is injected by its qualifier alone included. Which one to use is seen later. */
final class OnDataSourceCondition extends SpringBootCondition implements ConfigurationCondition {

    @Override
    public ConfigurationPhase getConfigurationPhase() {
        return ConfigurationPhase.REGISTER_BEAN;
    }

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConfigurableListableBeanFactory beans = context.getBeanFactory();
        ConditionMessage.Builder message = ConditionMessage.forCondition("PgWorker");
        if (beans == null || names(beans).length == 0) {
            return ConditionOutcome.noMatch(
                    message.didNotFind("a DataSource bean").atAll());
        }
        return ConditionOutcome.match(message.because("there is a DataSource bean"));
    }

    private static String[] names(ConfigurableListableBeanFactory beans) {
        return BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, DataSource.class, true, false);
    }
}
