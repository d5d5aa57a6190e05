# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_kubectl_applyset_global_optspecs
    string join \n n/namespace= o/output= v/verbose q/quiet color= no-progress concurrency= kubeconfig= context= cluster= user= as= as-group= s/server= token= certificate-authority= client-certificate= client-key= tls-server-name= insecure-skip-tls-verify request-timeout= h/help V/version
end

function __fish_kubectl_applyset_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_kubectl_applyset_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_kubectl_applyset_using_subcommand
    set -l cmd (__fish_kubectl_applyset_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -s n -l namespace -d 'Namespace of the parent, and of manifests that name none' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -s o -l output -d 'Print a document or names instead of lines for people' -r -f -a "json\t'One document'
yaml\t'One document'
name\t'Names alone, a line each'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l color -d 'Colour in messages' -r -f -a "auto\t'At a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l concurrency -d 'The most requests under way at once; it begins with 16 and heeds the server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l kubeconfig -d 'Path of the kubeconfig file' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l context -d 'Context of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l cluster -d 'Cluster of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l user -d 'User of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l as -d 'User to impersonate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l as-group -d 'Group to impersonate; may be repeated' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -s s -l server -d 'Address of the API server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l token -d 'Bearer token' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l certificate-authority -d 'File of the certificate authority' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l client-certificate -d 'File of the client certificate' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l client-key -d 'File of the client certificate\'s key' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l tls-server-name -d 'Name to expect in the server\'s certificate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l request-timeout -d 'Limit of a single request, such as 30s or 2m; 0 is the default of 75s' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -s v -l verbose -d 'Tell more: the phases of the run, and why each member is sent'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -s q -l quiet -d 'Tell only errors'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l no-progress -d 'Draw no progress bars'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -l insecure-skip-tls-verify -d 'Believe any server'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -s V -l version -d 'Print version'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -f -a "apply" -d 'Apply manifests, and prune what left them since the last run'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -f -a "list" -d 'List the sets of a namespace or of the cluster'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -f -a "view" -d 'Show one set: its parent, its record, its members'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -f -a "rbac" -d 'Print the least rights with which a set can be applied from its manifests'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -f -a "completion" -d 'Print the completion script of a shell'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -f -a "version" -d 'Print the version of this program'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l applyset -d 'The same as SET, written as kubectl writes it' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -s f -l filename -d 'File or directory of manifests, - for standard input; may be repeated' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l prune -d 'Delete members that left the manifests' -r -f -a "true\t''
false\t''"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l dry-run -d 'Write nothing: `client` tells what the plan is, `server` lets the server check it' -r -f -a "none\t'Write'
client\t'Tell from the plan'
server\t'Ask the server'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l max-prune -d 'Refuse to prune more objects than this' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l field-manager -d 'Name under which fields of members are owned; by default that of the tooling' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l tooling -d 'Keep the set another tool\'s, so that both can operate it: kubectl/vX.Y.Z' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l server-side -d 'Accepted because kubectl has it; apply is always server-side' -r -f -a "true\t''
false\t''"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -s n -l namespace -d 'Namespace of the parent, and of manifests that name none' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -s o -l output -d 'Print a document or names instead of lines for people' -r -f -a "json\t'One document'
yaml\t'One document'
name\t'Names alone, a line each'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l color -d 'Colour in messages' -r -f -a "auto\t'At a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l concurrency -d 'The most requests under way at once; it begins with 16 and heeds the server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l kubeconfig -d 'Path of the kubeconfig file' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l context -d 'Context of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l cluster -d 'Cluster of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l user -d 'User of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l as -d 'User to impersonate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l as-group -d 'Group to impersonate; may be repeated' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -s s -l server -d 'Address of the API server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l token -d 'Bearer token' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l certificate-authority -d 'File of the certificate authority' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l client-certificate -d 'File of the client certificate' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l client-key -d 'File of the client certificate\'s key' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l tls-server-name -d 'Name to expect in the server\'s certificate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l request-timeout -d 'Limit of a single request, such as 30s or 2m; 0 is the default of 75s' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -s R -l recursive -d 'Look into directories of directories, too'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l allow-empty -d 'Let a run without any manifest prune everything'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l allow-data-loss -d 'Prune volumes, and namespaces and kinds with what others put into them'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l no-skip -d 'Send members that are unchanged, too'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l force-conflicts -d 'Take fields that other field managers own'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l steal -d 'Take objects of the manifests that belong to another set'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l take-over -d 'Take over a set that another tool manages, or an object that is no parent yet'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -s y -l yes -d 'Go on without asking whether to take over'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -s v -l verbose -d 'Tell more: the phases of the run, and why each member is sent'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -s q -l quiet -d 'Tell only errors'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l no-progress -d 'Draw no progress bars'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -l insecure-skip-tls-verify -d 'Believe any server'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand apply" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -s n -l namespace -d 'Namespace of the parent, and of manifests that name none' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -s o -l output -d 'Print a document or names instead of lines for people' -r -f -a "json\t'One document'
yaml\t'One document'
name\t'Names alone, a line each'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l color -d 'Colour in messages' -r -f -a "auto\t'At a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l concurrency -d 'The most requests under way at once; it begins with 16 and heeds the server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l kubeconfig -d 'Path of the kubeconfig file' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l context -d 'Context of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l cluster -d 'Cluster of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l user -d 'User of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l as -d 'User to impersonate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l as-group -d 'Group to impersonate; may be repeated' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -s s -l server -d 'Address of the API server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l token -d 'Bearer token' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l certificate-authority -d 'File of the certificate authority' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l client-certificate -d 'File of the client certificate' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l client-key -d 'File of the client certificate\'s key' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l tls-server-name -d 'Name to expect in the server\'s certificate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l request-timeout -d 'Limit of a single request, such as 30s or 2m; 0 is the default of 75s' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -s A -l all-namespaces -d 'Sets of all namespaces'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -s v -l verbose -d 'Tell more: the phases of the run, and why each member is sent'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -s q -l quiet -d 'Tell only errors'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l no-progress -d 'Draw no progress bars'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -l insecure-skip-tls-verify -d 'Believe any server'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l applyset -d 'The same as SET, written as kubectl writes it' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -s n -l namespace -d 'Namespace of the parent, and of manifests that name none' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -s o -l output -d 'Print a document or names instead of lines for people' -r -f -a "json\t'One document'
yaml\t'One document'
name\t'Names alone, a line each'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l color -d 'Colour in messages' -r -f -a "auto\t'At a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l concurrency -d 'The most requests under way at once; it begins with 16 and heeds the server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l kubeconfig -d 'Path of the kubeconfig file' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l context -d 'Context of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l cluster -d 'Cluster of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l user -d 'User of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l as -d 'User to impersonate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l as-group -d 'Group to impersonate; may be repeated' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -s s -l server -d 'Address of the API server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l token -d 'Bearer token' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l certificate-authority -d 'File of the certificate authority' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l client-certificate -d 'File of the client certificate' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l client-key -d 'File of the client certificate\'s key' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l tls-server-name -d 'Name to expect in the server\'s certificate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l request-timeout -d 'Limit of a single request, such as 30s or 2m; 0 is the default of 75s' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -s v -l verbose -d 'Tell more: the phases of the run, and why each member is sent'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -s q -l quiet -d 'Tell only errors'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l no-progress -d 'Draw no progress bars'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -l insecure-skip-tls-verify -d 'Believe any server'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand view" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l applyset -d 'The same as SET, written as kubectl writes it' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -s f -l filename -d 'File or directory of manifests, - for standard input; may be repeated' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l subject -d 'Who gets the rights: `User:NAME`, `Group:NAME`, `ServiceAccount:[NAMESPACE:]NAME`, or the NAME of a service account in the set\'s namespace; by default the user of --as, else the service account named like the set' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -s n -l namespace -d 'Namespace of the parent, and of manifests that name none' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -s o -l output -d 'Print a document or names instead of lines for people' -r -f -a "json\t'One document'
yaml\t'One document'
name\t'Names alone, a line each'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l color -d 'Colour in messages' -r -f -a "auto\t'At a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l concurrency -d 'The most requests under way at once; it begins with 16 and heeds the server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l kubeconfig -d 'Path of the kubeconfig file' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l context -d 'Context of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l cluster -d 'Cluster of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l user -d 'User of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l as -d 'User to impersonate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l as-group -d 'Group to impersonate; may be repeated' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -s s -l server -d 'Address of the API server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l token -d 'Bearer token' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l certificate-authority -d 'File of the certificate authority' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l client-certificate -d 'File of the client certificate' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l client-key -d 'File of the client certificate\'s key' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l tls-server-name -d 'Name to expect in the server\'s certificate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l request-timeout -d 'Limit of a single request, such as 30s or 2m; 0 is the default of 75s' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -s R -l recursive -d 'Look into directories of directories, too'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -s v -l verbose -d 'Tell more: the phases of the run, and why each member is sent'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -s q -l quiet -d 'Tell only errors'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l no-progress -d 'Draw no progress bars'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -l insecure-skip-tls-verify -d 'Believe any server'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand rbac" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -s n -l namespace -d 'Namespace of the parent, and of manifests that name none' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -s o -l output -d 'Print a document or names instead of lines for people' -r -f -a "json\t'One document'
yaml\t'One document'
name\t'Names alone, a line each'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l color -d 'Colour in messages' -r -f -a "auto\t'At a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l concurrency -d 'The most requests under way at once; it begins with 16 and heeds the server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l kubeconfig -d 'Path of the kubeconfig file' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l context -d 'Context of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l cluster -d 'Cluster of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l user -d 'User of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l as -d 'User to impersonate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l as-group -d 'Group to impersonate; may be repeated' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -s s -l server -d 'Address of the API server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l token -d 'Bearer token' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l certificate-authority -d 'File of the certificate authority' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l client-certificate -d 'File of the client certificate' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l client-key -d 'File of the client certificate\'s key' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l tls-server-name -d 'Name to expect in the server\'s certificate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l request-timeout -d 'Limit of a single request, such as 30s or 2m; 0 is the default of 75s' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -s v -l verbose -d 'Tell more: the phases of the run, and why each member is sent'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -s q -l quiet -d 'Tell only errors'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l no-progress -d 'Draw no progress bars'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -l insecure-skip-tls-verify -d 'Believe any server'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand completion" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -s n -l namespace -d 'Namespace of the parent, and of manifests that name none' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -s o -l output -d 'Print a document or names instead of lines for people' -r -f -a "json\t'One document'
yaml\t'One document'
name\t'Names alone, a line each'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l color -d 'Colour in messages' -r -f -a "auto\t'At a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l concurrency -d 'The most requests under way at once; it begins with 16 and heeds the server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l kubeconfig -d 'Path of the kubeconfig file' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l context -d 'Context of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l cluster -d 'Cluster of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l user -d 'User of the kubeconfig to use' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l as -d 'User to impersonate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l as-group -d 'Group to impersonate; may be repeated' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -s s -l server -d 'Address of the API server' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l token -d 'Bearer token' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l certificate-authority -d 'File of the certificate authority' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l client-certificate -d 'File of the client certificate' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l client-key -d 'File of the client certificate\'s key' -r -F
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l tls-server-name -d 'Name to expect in the server\'s certificate' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l request-timeout -d 'Limit of a single request, such as 30s or 2m; 0 is the default of 75s' -r
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -s v -l verbose -d 'Tell more: the phases of the run, and why each member is sent'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -s q -l quiet -d 'Tell only errors'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l no-progress -d 'Draw no progress bars'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -l insecure-skip-tls-verify -d 'Believe any server'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand version" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand help; and not __fish_seen_subcommand_from apply list view rbac completion version help" -f -a "apply" -d 'Apply manifests, and prune what left them since the last run'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand help; and not __fish_seen_subcommand_from apply list view rbac completion version help" -f -a "list" -d 'List the sets of a namespace or of the cluster'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand help; and not __fish_seen_subcommand_from apply list view rbac completion version help" -f -a "view" -d 'Show one set: its parent, its record, its members'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand help; and not __fish_seen_subcommand_from apply list view rbac completion version help" -f -a "rbac" -d 'Print the least rights with which a set can be applied from its manifests'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand help; and not __fish_seen_subcommand_from apply list view rbac completion version help" -f -a "completion" -d 'Print the completion script of a shell'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand help; and not __fish_seen_subcommand_from apply list view rbac completion version help" -f -a "version" -d 'Print the version of this program'
complete -c kubectl-applyset -n "__fish_kubectl_applyset_using_subcommand help; and not __fish_seen_subcommand_from apply list view rbac completion version help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
