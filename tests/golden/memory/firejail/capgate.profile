caps.drop all
nonewprivs
noroot
nogroups
net none
ipc-namespace
hostname capgate
dbus-user none
dbus-system none
machine-id
no3d
noinput
nosound
notv
nou2f
novideo
private-dev
private-tmp
x11 none
noblacklist /bin
noblacklist /dev
noblacklist /etc
noblacklist /lib
noblacklist /lib32
noblacklist /lib64
noblacklist /libx32
noblacklist /proc
noblacklist /run
noblacklist /sbin
noblacklist /srv
noblacklist /tmp
noblacklist /usr
noblacklist /run/firejail
blacklist /*
blacklist /run/*
private-etc alternatives,ca-certificates,ld.so.cache,ld.so.conf,ld.so.conf.d,mime.types,os-release,pki,protocols,services,ssl
whitelist /srv/memory/graph.jsonl
read-write /srv/memory/graph.jsonl
noexec /srv/memory/graph.jsonl
read-only /srv/memory/graph.jsonl/.bash_profile
read-only /srv/memory/graph.jsonl/.bashrc
read-only /srv/memory/graph.jsonl/.claude/agents
read-only /srv/memory/graph.jsonl/.claude/commands
read-only /srv/memory/graph.jsonl/.claude/settings.json
read-only /srv/memory/graph.jsonl/.claude/settings.local.json
read-only /srv/memory/graph.jsonl/.codex/config.toml
read-only /srv/memory/graph.jsonl/.cursor/mcp.json
read-only /srv/memory/graph.jsonl/.devcontainer
read-only /srv/memory/graph.jsonl/.envrc
read-only /srv/memory/graph.jsonl/.factory/mcp.json
read-only /srv/memory/graph.jsonl/.gemini/settings.json
read-only /srv/memory/graph.jsonl/.git/commondir
read-only /srv/memory/graph.jsonl/.git/config
read-only /srv/memory/graph.jsonl/.git/config.worktree
read-only /srv/memory/graph.jsonl/.git/hooks
read-only /srv/memory/graph.jsonl/.gitconfig
read-only /srv/memory/graph.jsonl/.github/workflows
read-only /srv/memory/graph.jsonl/.gitmodules
read-only /srv/memory/graph.jsonl/.husky
read-only /srv/memory/graph.jsonl/.idea
read-only /srv/memory/graph.jsonl/.kiro/settings/mcp.json
read-only /srv/memory/graph.jsonl/.mcp.json
read-only /srv/memory/graph.jsonl/.npmrc
read-only /srv/memory/graph.jsonl/.pnp.cjs
read-only /srv/memory/graph.jsonl/.pre-commit-config.yaml
read-only /srv/memory/graph.jsonl/.profile
read-only /srv/memory/graph.jsonl/.ripgreprc
read-only /srv/memory/graph.jsonl/.roo/mcp.json
read-only /srv/memory/graph.jsonl/.tool-versions
read-only /srv/memory/graph.jsonl/.vscode
read-only /srv/memory/graph.jsonl/.vscode/mcp.json
read-only /srv/memory/graph.jsonl/.yarnrc
read-only /srv/memory/graph.jsonl/.yarnrc.yml
read-only /srv/memory/graph.jsonl/.zed/settings.json
read-only /srv/memory/graph.jsonl/.zprofile
read-only /srv/memory/graph.jsonl/.zshrc
read-only /srv/memory/graph.jsonl/opencode.json
read-only /srv/memory/graph.jsonl/opencode.jsonc
protocol inet,inet6
seccomp.block-secondary
seccomp-error-action ENOSYS
seccomp.keep accept,accept4,access,alarm,arch_prctl,bind,brk,cachestat,capget,capset,chdir,chmod,chown,clock_getres,clock_gettime,clock_nanosleep,clone,close,close_range,connect,copy_file_range,creat,dup,dup2,dup3,epoll_create,epoll_create1,epoll_ctl,epoll_pwait,epoll_pwait2,epoll_wait,eventfd,eventfd2,execve,exit,exit_group,faccessat,faccessat2,fadvise64,fallocate,fchdir,fchmod,fchmodat,fchmodat2,fchown,fchownat,fcntl,fdatasync,fgetxattr,flistxattr,flock,fremovexattr,fsetxattr,fstat,fstatfs,fsync,ftruncate,futex,futex_requeue,futex_wait,futex_waitv,futex_wake,futimesat,get_mempolicy,get_robust_list,getcpu,getcwd,getdents,getdents64,getegid,geteuid,getgid,getgroups,getitimer,getpeername,getpgid,getpgrp,getpid,getppid,getpriority,getrandom,getresgid,getresuid,getrlimit,getrusage,getsid,getsockname,getsockopt,gettid,gettimeofday,getuid,getxattr,getxattrat,inotify_add_watch,inotify_init,inotify_init1,inotify_rm_watch,ioctl,ioprio_get,ioprio_set,kill,landlock_add_rule,landlock_create_ruleset,landlock_restrict_self,lchown,lgetxattr,link,linkat,listen,listxattr,listxattrat,llistxattr,lremovexattr,lseek,lsetxattr,lstat,madvise,map_shadow_stack,mbind,membarrier,mincore,mkdir,mkdirat,mknod,mknodat,mlock,mlock2,mlockall,mmap,mprotect,mq_getsetattr,mq_notify,mq_open,mq_timedreceive,mq_timedsend,mq_unlink,mremap,mseal,msgctl,msgget,msgrcv,msgsnd,msync,munlock,munlockall,munmap,nanosleep,newfstatat,open,openat,pause,personality,pidfd_open,pidfd_send_signal,pipe,pipe2,pkey_alloc,pkey_free,pkey_mprotect,poll,ppoll,prctl,pread64,preadv,preadv2,prlimit64,pselect6,pwrite64,pwritev,pwritev2,read,readahead,readlink,readlinkat,readv,recvfrom,recvmmsg,recvmsg,removexattr,removexattrat,rename,renameat,renameat2,restart_syscall,rmdir,rseq,rt_sigaction,rt_sigpending,rt_sigprocmask,rt_sigqueueinfo,rt_sigreturn,rt_sigsuspend,rt_sigtimedwait,rt_tgsigqueueinfo,sched_get_priority_max,sched_get_priority_min,sched_getaffinity,sched_getattr,sched_getparam,sched_getscheduler,sched_rr_get_interval,sched_setaffinity,sched_setattr,sched_setparam,sched_setscheduler,sched_yield,seccomp,select,semctl,semget,semop,semtimedop,sendfile,sendmmsg,sendmsg,sendto,set_mempolicy,set_mempolicy_home_node,set_robust_list,set_tid_address,setfsgid,setfsuid,setgid,setgroups,setitimer,setpgid,setpriority,setregid,setresgid,setresuid,setreuid,setrlimit,setsid,setsockopt,setuid,setxattr,setxattrat,shmat,shmctl,shmdt,shmget,shutdown,sigaltstack,signalfd,signalfd4,socket,socketpair,splice,stat,statfs,statx,symlink,symlinkat,sync,sync_file_range,syncfs,sysinfo,tee,tgkill,time,timer_create,timer_delete,timer_getoverrun,timer_gettime,timer_settime,timerfd_create,timerfd_gettime,timerfd_settime,times,tkill,truncate,umask,uname,unlink,unlinkat,utime,utimensat,utimes,wait4,waitid,write,writev
rlimit-nofile 1024
